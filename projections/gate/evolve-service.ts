import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { GateServiceDefinition } from '../../schemas/events.ts'
import type { GateServiceRow } from './rows.ts'

const serviceEventTypes = [
  'GateServiceRegistered',
  'GateServiceChanged',
  'GateServiceVerified',
  'GateServiceVerificationWithdrawn',
  'GateServiceDisabled',
] as const
export type ServiceEvent = Extract<RecordedEvent, { type: (typeof serviceEventTypes)[number] }>

export function isServiceEvent(event: RecordedEvent): event is ServiceEvent {
  return serviceEventTypes.some((type) => type === event.type)
}

/** The service after the event; undefined while it has not been registered. */
export function evolveService(
  state: GateServiceRow | undefined,
  event: ServiceEvent,
): GateServiceRow | undefined {
  if (event.type === 'GateServiceRegistered') return state ?? registered(event)
  if (!state) return undefined
  switch (event.type) {
    case 'GateServiceChanged': {
      const { definition, changed_at: updated_at } = event.data
      const verified = state.verified && isSameIdentity(state.definition, definition)
      return { ...state, definition, verified, updated_at }
    }
    case 'GateServiceVerified':
      return { ...state, verified: true, updated_at: event.data.verified_at }
    case 'GateServiceVerificationWithdrawn':
      return { ...state, verified: false, updated_at: event.data.withdrawn_at }
    case 'GateServiceDisabled':
      return { ...state, status: 'disabled', updated_at: event.data.disabled_at }
    default:
      return event satisfies never
  }
}

/** Whether people take both for the same service. What was vouched for is what they saw then. */
function isSameIdentity(before: GateServiceDefinition, after: GateServiceDefinition): boolean {
  return (
    before.name === after.name &&
    before.website === after.website &&
    before.branding.logo_url === after.branding.logo_url
  )
}

function registered({ data }: Extract<ServiceEvent, { type: 'GateServiceRegistered' }>): GateServiceRow {
  const { service_id: id, organization_id, environment, definition, registered_at: at } = data
  const shown = { status: 'active', verified: false, definition } as const
  return { id, organization_id, environment, ...shown, created_at: at, updated_at: at }
}
