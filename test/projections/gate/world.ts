import type { DomainEvent, RecordedEvent } from '../../../infra/event-store/codec.ts'
import { gateProjection } from '../../../projections/gate/projection.ts'
import { type ReadModel, useReadModel } from '../read-model.ts'

let offset = 0

/** The event as it is in the log, behind all others made so; `id` is the log's id of it, a new one unless given. */
export function recorded(event: DomainEvent, { id }: { id?: string } = {}): RecordedEvent {
  const place = offset++
  const meta = { eventId: id ?? `log_${place}`, time: 1, organizationId: null, environment: null }
  return { ...event, meta, position: { topic: 'tidegate.gate.v1', partition: 0, offset: place } }
}

/** Gate's read model in a database of the test file's own, empty before each test. */
export const useGateWorld = (): ReadModel => useReadModel(gateProjection, (event) => recorded(event))
