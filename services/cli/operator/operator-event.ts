import { randomBytes } from 'node:crypto'
import { userInfo } from 'node:os'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import type { EventLog } from '../../../infra/log/port.ts'

/** Appends an event of an operator command that affects the whole installation. The event id starts with `idPrefix`. */
export async function appendOperatorEvent(
  { log, codec }: { log: Pick<EventLog, 'append'>; codec: Pick<EventCodec, 'toRecordWithCause'> },
  event: DomainEvent,
  { command, idPrefix, now }: { command: string; idPrefix: string; now: number },
): Promise<void> {
  const eventId = `${idPrefix}_${randomBytes(12).toString('hex')}`
  const cause = { actor: { type: 'operator', id: command }, request_id: null } as const
  const meta = { eventId, time: now, organizationId: null, environment: null }
  await log.append([codec.toRecordWithCause(event, meta, cause)])
}

/** Returns the user's login name, or the uid if it has no name, as in a container. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.()}`
  }
}
