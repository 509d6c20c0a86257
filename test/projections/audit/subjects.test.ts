import avro, { type Schema } from 'avsc'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type CausedEvent, subjectOf } from '../../../projections/audit/projection.ts'
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
  'session_id',
  'gate_session_id',
  'gate_account_id',
  'service_id',
  'visitor_id',
  'engine_family',
  'domain',
  'model_id',
]

test.each(causedNames)('%s is about what one of its ids names, and nothing else of it', (type) => {
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
    expect(named).toContain(subjectOf(event))
  })
  fc.assert(property, { numRuns: 20 })
})

test('the nearest, but no Gate session that waits', () => {
  const organization_id = 'org_1'
  const renamed = { organization_id, key_id: 'key_1', name: 'New', renamed_at: 1 }
  expect(subjectOf(event({ type: 'ApiKeyRenamed', data: renamed }))).toBe('key_1')
  const revoked = { gate_session_id: 'gate_1', gate_account_id: 'gacct_1', revoked_at: 1 }
  expect(subjectOf(event({ type: 'AgentTokenRevoked', data: revoked }))).toBe('gacct_1')
  const opened = { gate_session_id: 'gate_1', service_id: 'acme', ...signup }
  expect(subjectOf(event({ type: 'GateSessionOpened', data: opened }))).toBe('acme')
  const cleared = {
    session_id: 'sid_1',
    event_id: 'evt_1',
    environment: 'live' as const,
    cleared_at: 1,
  }
  expect(
    subjectOf(event({ type: 'ClientUserCleared', data: { ...cleared, organization_id } })),
  ).toBe('sid_1')
  const suspended = { organization_id, suspended_at: 1 }
  expect(subjectOf(event({ type: 'OrganizationSuspended', data: suspended }))).toBe('org_1')
})

const signup = {
  organization_id: 'org_1',
  environment: 'live' as const,
  account_name: 'Robin',
  metadata: null,
  delivery_key_id: 'x',
  delivery_public_key: 'x',
  poll_token_hash: 'x',
  requested_ip: null,
  requested_user_agent: null,
  claim: null,
  confirmation_code: 'K4-7M9',
  opened_at: 1,
  expires_at: 2,
}

function event<E extends Pick<CausedEvent, 'type' | 'data'>>(happened: E) {
  const meta = { eventId: 'evt_1', time: 1, organizationId: null, environment: null }
  const place = { topic: 'any', partition: 0, offset: 0 }
  return { ...happened, meta, value: Buffer.alloc(0), position: place }
}
