import { type AddressNetwork, noNetwork } from '../../../../infra/ip/network.ts'
import { type Evaluation, evaluate } from '../../../../services/scoring/decide.ts'
import { evolve, type SessionEvent, type SessionState } from '../../../../services/scoring/session-state.ts'
import { batch, opened, platformOf, startedAt, testSession } from './events.ts'
import type { Client } from './snapshots.ts'

/** The state after the events; the first must open the session. */
export function stateAfter(events: SessionEvent[]): SessionState {
  const state = events.reduce<SessionState | undefined>((known, event) => evolve(known, event), undefined)
  if (!state) throw new Error('no events')
  return state
}

export interface Seen {
  /** Behaviour as the client sends it, channel by channel. */
  behavior?: object
  network?: AddressNetwork
}

/** What scoring makes of one snapshot of a client, with the behaviour that came with it. */
export function evaluateClient(client: Client, { behavior, network }: Seen = {}): Evaluation {
  const session = testSession('evaluated', { client, platform: platformOf(client) })
  const observations = { version: 1, elapsed_ms: 500, snapshot: client.snapshot, behavior }
  const state = stateAfter([...opened(session), batch(session, { observations })])
  return evaluate({ state, network: network ?? noNetwork.lookup(session.ip, startedAt) })
}

export function slugs({ fired }: Evaluation): string[] {
  return fired.map(({ slug }) => slug)
}
