import type { EventLog, LogRecord } from '../../infra/log/port.ts'
import type { Claims } from '../../services/collect/claims.ts'
import type { CollectDeps } from '../../services/collect/routes.ts'
import { evolve, isSessionEvent, type SessionState } from '../../services/scoring/session/state.ts'
import { codec, startCollectApp } from '../services/collect/collect-app.ts'
import type { Post } from './sequence-race.ts'

export interface CollectProcess {
  post: Post
  publishableKey: string
  now: { ms: number }
  close(): Promise<void>
}

interface ProcessOptions extends Partial<CollectDeps> {
  log: Pick<EventLog, 'append'>
  claims: Claims
}

/** Starts a process without state, on shared storage. It accepts requests with the keys of the others. */
export async function startCollectProcess(options: ProcessOptions): Promise<CollectProcess> {
  const app = await startCollectApp(options)
  const publishableKey = app.publishable()
  return {
    publishableKey,
    now: app.now,
    post: ({ path, headers, payload }) =>
      app.send('POST', path, {
        headers: { ...headers, authorization: `Bearer ${publishableKey}` },
        payload,
      }),
    close: app.close,
  }
}

/** Returns the state that scoring computes from the session's records, in log order. */
export function stateOf(sessionId: string, records: readonly LogRecord[]): SessionState {
  const events = records
    .filter(({ key }) => key === sessionId)
    .map((record) => codec.fromRecord(record))
  const state = events
    .filter(isSessionEvent)
    .reduce<SessionState | undefined>((before, event) => evolve(before, event), undefined)
  if (!state) throw new Error(`nothing was recorded of ${sessionId}`)
  return state
}
