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

/** A process that remembers nothing yet, on what several share. It takes requests with the key of any other. */
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

/** What scoring makes of the records of a session, in the order of the log. */
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
