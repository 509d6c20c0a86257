import { randomBytes } from 'node:crypto'
import { userInfo } from 'node:os'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import type { EventLog } from '../../../infra/log/port.ts'

/** Records what an operator's command did that is of no organization. `idPrefix` begins the event's id. */
export async function recordFact(
  { log, codec }: { log: Pick<EventLog, 'append'>; codec: Pick<EventCodec, 'toCausedRecord'> },
  event: DomainEvent,
  { command, idPrefix, now }: { command: string; idPrefix: string; now: number },
): Promise<void> {
  const eventId = `${idPrefix}_${randomBytes(12).toString('hex')}`
  const cause = { actor: { type: 'operator', id: command }, request_id: null } as const
  const meta = { eventId, time: now, organizationId: null, environment: null }
  await log.append([codec.toCausedRecord(event, meta, cause)])
}

/** In a container a user may have no name. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.()}`
  }
}
