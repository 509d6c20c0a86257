import avro, { type Schema } from 'avsc'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { auditSubjectId, type CausedEvent } from '../../../projections/audit/projection.ts'
import { causedNames } from '../../../schemas/events.ts'
import { readSchemaFiles } from '../../../schemas/generate.ts'
import { valuesOf } from '../../schemas/arbitrary.ts'

const newest = new Map(readSchemaFiles().map((file) => [file.name, file.schema]))
const ids = [
  'organization_id',
  'erasure_id',
  'key_id',
  'endpoint_id',
  'delivery_id',
  'mark_id',
  'alert_id',
  'view_id',
  'session_id',
  'gate_session_id',
  'gate_account_id',
  'service_id',
  'visitor_id',
  'engine_family',
  'domain',
  'model_id',
]

test.each(causedNames)('the subject of %s is one of its ids', (type) => {
  const data = valuesOf(avro.Type.forSchema(newest.get(type) as Schema))
  const property = fc.property(data, (value) => {
    const event = { type, data: value } as CausedEvent
    const named = Object.entries(event.data).flatMap(([name, id]) =>
      ids.includes(name) ? [id] : [],
    )
    if (event.type === 'RecordSkipped') {
      const { skipped_topic, skipped_partition } = event.data
      named.push(`${skipped_topic}/${skipped_partition}`)
    }
    if (event.type === 'ScoringModelChanged') {
      const { model_id, organization_id } = event.data
      if (model_id === null && organization_id === null) named.push('everybody')
    }
    expect(named).toContain(auditSubjectId(event))
  })
  fc.assert(property, { numRuns: 20 })
})

const organization_id = 'org_1'
const ofSession = { organization_id, session_id: 'sid_1', event_id: 'evt_1' }

test.each<[string, object]>([
  ['key_1', { organization_id, key_id: 'key_1', name: 'New', renamed_at: 1 }],
  ['gacct_1', { gate_session_id: 'gate_1', gate_account_id: 'gacct_1', revoked_at: 1 }],
  // The id of a pending signup is a secret, because its holder can approve or reject it.
  ['acme', { organization_id, gate_session_id: 'gate_1', service_id: 'acme', opened_at: 1 }],
  ['sid_1', { ...ofSession, environment: 'live', cleared_at: 1 }],
  ['org_1', { organization_id, suspended_at: 1 }],
])('the subject is the most specific id: %s for %j', (subject, data) => {
  expect(auditSubjectId({ data } as Pick<CausedEvent, 'data'>)).toBe(subject)
})
