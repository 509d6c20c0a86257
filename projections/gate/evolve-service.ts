import type { RecordedEvent } from '../../schemas/codec.ts'
import type { GateServiceRow } from './rows.ts'

const serviceEventTypes = ['GateServiceRegistered', 'GateServiceChanged', 'GateServiceDisabled'] as const
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
    case 'GateServiceChanged':
      return { ...state, definition: event.data.definition, updated_at: event.data.changed_at }
    case 'GateServiceDisabled':
      return { ...state, status: 'disabled', updated_at: event.data.disabled_at }
    default:
      return event satisfies never
  }
}

function registered({ data }: Extract<ServiceEvent, { type: 'GateServiceRegistered' }>): GateServiceRow {
  const { service_id: id, organization_id, environment, definition, registered_at: at } = data
  return { id, organization_id, environment, status: 'active', definition, created_at: at, updated_at: at }
}
