import avro, { type Schema } from 'avsc'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type DomainEvent, partitionKeyOf, sessionOf } from '../../../infra/event-store/event.ts'
import { openedSchema, readSchemaFiles } from '../../../schemas/generate.ts'
import { valuesOf } from '../../schemas/arbitrary.ts'

const files = readSchemaFiles()
const newest = [...new Map(files.map((file) => [file.name, file])).values()]

function eventsOf({ name, schema }: (typeof files)[number]): fc.Arbitrary<DomainEvent> {
  const subjectTypes = fc.constantFrom('session', 'gate_session', 'webhook_endpoint', '')
  return fc
    .tuple(valuesOf(avro.Type.forSchema(openedSchema(schema) as Schema)), subjectTypes)
    .map(([value, subject_type]) => {
      const data = { ...Object(value), ...('subject_type' in Object(value) && { subject_type }) }
      return { type: name, data } as DomainEvent
    })
}

// Another key would move later records to another partition, and consumers could read them before earlier ones.
describe.each(newest.map((file) => [file.name, file] as const))('%s', (_, file) => {
  test('keeps the partition key and data key of its first records', () => {
    const same = (event: DomainEvent) => {
      expect(partitionKeyOf(event)).toBe(firstKeyOf(event))
      expect(sessionOf(event)).toBe(firstSessionOf(event))
    }
    fc.assert(fc.property(eventsOf(file), same), { numRuns: 100 })
  })
})

function firstSessionOf({ type, data }: DomainEvent): string | undefined {
  if (type === 'WebhookEventRaised')
    return ['session', 'gate_session'].includes(data.subject_type) ? data.subject_id : undefined
  if (type === 'WebhookDeliveryAttempted') return data.session_subject_id ?? undefined
  if ('gate_session_id' in data) return data.gate_session_id
  return 'session_id' in data ? data.session_id : undefined
}

function firstKeyOf({ data }: DomainEvent): string {
  if ('session_id' in data) return data.session_id
  if ('erasure_id' in data) return data.organization_id
  if ('skipped_topic' in data) return `${data.skipped_topic}/${data.skipped_partition}`
  if ('engine_family' in data) return data.engine_family
  if ('check_id' in data) return data.check_id
  if ('gate_session_id' in data) return data.gate_session_id
  if ('service_id' in data) return data.service_id
  if ('model_id' in data) return data.organization_id ?? 'everybody'
  if ('event_id' in data) return data.event_id
  return data.organization_id
}
