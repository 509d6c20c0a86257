import type { DomainEvent } from '../../../infra/event-store/codec.ts'
import type { Decision } from '../../../infra/event-store/decide.ts'
import { decided } from '../../../infra/event-store/decided.ts'
import { derivedId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'

type OfSession = Pick<GateSessionRow, 'id' | 'organization_id' | 'environment'>

/** What ends something of the session, which happens once: a repetition has the same event id. */
export function sessionDecision(
  session: OfSession,
  { event, now }: { event: DomainEvent; now: number },
): Decision {
  const { id, organization_id: organizationId, environment } = session
  return decided(event, { organizationId, environment, eventId: derivedId('evt', id, event.type), now })
}
