import avro from 'avsc'
import { afterAll, afterEach, expect, test } from 'vitest'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import type { Periodic } from '../../../infra/flow/periodic.ts'
import { partitionOfKey } from '../../../infra/log/partition.ts'
import type { EventLog, KeyedRecord } from '../../../infra/log/port.ts'
import { createPool, lockKey } from '../../../infra/postgres/pool.ts'
import { policiesProjection } from '../../../projections/policies/projection.ts'
import { factsRecord } from '../../../projections/sessions/facts-schema.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import type { OrganizationDataPolicyChanged, SessionScored } from '../../../schemas/events.ts'
import { readFactsSchemas } from '../../../schemas/generate.ts'
import { enqueueScoredSince } from '../../../services/facts/outbox.ts'
import { runFactsPublisher } from '../../../services/facts/publisher.ts'
import { defaultDataPolicy } from '../../../services/organizations/decide-data-policy.ts'
import { id } from '../../projections/world-events.ts'
import { visitorErased } from '../../support/erased.ts'
import { eventually } from '../../support/eventually.ts'
import { createMemoryLog } from '../../support/memory-log.ts'
import { noSkips } from '../../support/no-skips.ts'
import { silent } from '../../support/projections.ts'
import { openServiceWorld } from '../../support/service-world.ts'
import { sessionScored } from '../../support/session-scored.ts'

const partitions = 3
const config = { TOPIC_PARTITIONS: partitions, FACTS_GONE_WITHIN_MS: 8000 }
const type = avro.Type.forSchema(JSON.parse(JSON.stringify(readFactsSchemas().at(-1)?.schema)))

const publishers: Periodic[] = []
let numbers = 0

const world = await openServiceWorld({ projections: [policiesProjection, sessionsProjection] })
afterEach(async () => {
  await Promise.all(publishers.splice(0).map((publisher) => publisher.stop()))
  await world.pool.query('truncate tidegate.facts_organizations, tidegate.facts_notes')
})
afterAll(() => world.close())

type Row = Record<string, unknown>

/** Creates an in-memory topic whose appends can be held. */
function createTopic() {
  const records: KeyedRecord[] = []
  const held = new Map<string, () => Promise<void>>()
  const memory: EventLog = createMemoryLog()
  const topic: EventLog = {
    ...memory,
    endPositions: async (name) =>
      Array.from({ length: partitions }, (_, partition) => ({ topic: name, partition, offset: 0 })),
    partitionOf: async (_topic, key) => partitionOfKey(key, partitions),
    async append(batch) {
      for (const { key } of batch) {
        const wait = held.get(key)
        held.delete(key)
        await wait?.()
      }
      records.push(...batch)
      return batch.map((record, offset) => ({ topic: record.topic, partition: 0, offset }))
    },
  }
  const of = (key: string) => records.filter((record) => record.key === key)
  return {
    log: topic,
    records,
    of,
    /** Returns the last row of each session, as a consumer of the whole topic sees them. */
    rows: () =>
      new Map(
        records.map(({ key, value }): [string, Row | null] => [
          key,
          value && type.fromBuffer(value.subarray(5)),
        ]),
      ),
    tombstones: (key: string) => of(key).filter(({ value }) => value === null).length,
    /** Makes the next append with a record of the key wait. */
    hold(key: string) {
      const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      held.set(key, async () => {
        reached.resolve()
        await released.promise
      })
      return { reached: reached.promise, release: released.resolve }
    },
  }
}

function publish(
  topic: ReturnType<typeof createTopic>,
  { repeatMs = 60_000, pool = world.pool } = {},
): Periodic {
  const { codec } = world
  const publisher = runFactsPublisher({
    pool,
    log: topic.log,
    codec,
    config,
    logger: silent,
    repeatMs,
  })
  publishers.push(publisher)
  return publisher
}

const newId = <P extends string>(prefix: P) => id(prefix, ++numbers)
const session = () => newId('sid')

async function setPolicy(organizationId: string, changes: Partial<OrganizationDataPolicyChanged>) {
  const data = { organization_id: organizationId, ...defaultDataPolicy, ...changes, changed_at: 1 }
  const about = { organizationId, environment: null }
  await world.append(policiesProjection, about, { type: 'OrganizationDataPolicyChanged', data })
}

/** Creates an organization with a policy. */
async function withPolicy(changes: Partial<OrganizationDataPolicyChanged> = { facts_topic: true }) {
  const organizationId = newId('org')
  await setPolicy(organizationId, changes)
  return organizationId
}

async function decide(
  organizationId: string,
  sessionId: string,
  overrides: Partial<SessionScored> = {},
) {
  const about = { organization_id: organizationId, session_id: sessionId, event_id: newId('evt') }
  const data = sessionScored({ ...about, ...overrides })
  const tenant = { organizationId, environment: 'live' } as const
  await world.append(sessionsProjection, tenant, { type: 'SessionScored', data })
}

async function erase(organizationId: string, sessionId: string) {
  const data = visitorErased([sessionId], { organization_id: organizationId })
  const tenant = { organizationId, environment: 'live' } as const
  await world.append(sessionsProjection, tenant, { type: 'VisitorErased', data })
}

async function notesOf(sessionId: string): Promise<number | undefined> {
  const text = 'select count(*)::int as n from tidegate.facts_notes where session_id = $1'
  return (await world.pool.query<{ n: number }>(text, [sessionId])).rows[0]?.n
}

const expectRow = (topic: ReturnType<typeof createTopic>, sessionId: string, row: Row) =>
  eventually(() => expect(topic.rows().get(sessionId)).toMatchObject(row))

test('the schema file matches the columns', () => {
  expect(readFactsSchemas().at(-1)?.schema).toEqual(factsRecord())
})

test('nothing is enqueued or appended while no organization has the topic', async () => {
  const topic = createTopic()
  publish(topic)
  const [organization, sid] = [newId('org'), session()]
  await decide(organization, sid)
  await erase(organization, sid)
  expect(await notesOf(sid)).toBe(0)
  await publishers[0]?.stop()
  expect(topic.records).toEqual([])
})

test('publishes current rows without hidden columns, for organizations with the topic', async () => {
  const topic = createTopic()
  const [organization, other] = [newId('org'), newId('org')]
  const [before, later, hidden] = [session(), session(), session()]
  await decide(organization, before, { verdict: 'human', risk_score: 3 })
  await decide(other, hidden)
  publish(topic)
  await setPolicy(organization, { facts_topic: true })
  await expectRow(topic, before, {
    session_id: before,
    organization_id: organization,
    verdict: 'human',
    risk_score: 3,
    ip_address: null,
    user_agent: null,
    client_user_id: null,
    country: null,
  })
  await decide(organization, later, { verdict: 'bot', risk_score: 97 })
  await decide(organization, before, { verdict: 'bot', risk_score: 88 })
  await decide(other, hidden)
  await expectRow(topic, later, { verdict: 'bot', risk_score: 97 })
  await expectRow(topic, before, { verdict: 'bot', risk_score: 88 })
  await eventually(async () => expect(await notesOf(before)).toBe(0))
  expect(topic.rows().has(hidden)).toBe(false)
})

test('a changed policy publishes all rows again, and turning the topic off publishes tombstones', async () => {
  const topic = createTopic()
  const [organization, sid] = [newId('org'), session()]
  await decide(organization, sid)
  await setPolicy(organization, { facts_topic: true, hidden_facts: [] })
  publish(topic)
  await expectRow(topic, sid, { ip_address: '203.0.113.9', browser: 'Chrome' })
  await setPolicy(organization, { facts_topic: true, hidden_facts: ['browser', 'ip_address'] })
  await expectRow(topic, sid, { ip_address: null, browser: null })
  await setPolicy(organization, { facts_topic: false })
  await eventually(() => expect(topic.rows().get(sid)).toBeNull())
  await decide(organization, sid)
  expect(topic.rows().get(sid)).toBeNull()
})

test('erasure publishes a tombstone, and repeats it later', async () => {
  const topic = createTopic()
  const [organization, sid] = [await withPolicy(), session()]
  publish(topic, { repeatMs: 1500 })
  await decide(organization, sid)
  await eventually(() => expect(topic.rows().get(sid)).toBeTruthy())
  await erase(organization, sid)
  await eventually(() => expect(topic.tombstones(sid)).toBe(1))
  expect(await notesOf(sid)).toBe(1)
  await eventually(() => expect(topic.tombstones(sid)).toBe(2))
  await eventually(async () => expect(await notesOf(sid)).toBe(0))
})

test('a rebuild publishes nothing, and enqueueScoredSince publishes rows again', async () => {
  const topic = createTopic()
  const [organization, old, recent] = [await withPolicy(), session(), session()]
  publish(topic)
  await decide(organization, old, { evaluated_at: 1000 })
  await decide(organization, recent, { evaluated_at: 2000 })
  await eventually(() =>
    expect([...topic.rows().keys()]).toEqual(expect.arrayContaining([old, recent])),
  )
  await eventually(async () => expect(await notesOf(old)).toBe(0))
  const { pool } = world
  const options = { projection: sessionsProjection, logger: silent, skips: noSkips }
  const report = await rebuild({ ...world, ...options })
  expect(report).toMatchObject({ equal: true, switched: true })
  expect(await notesOf(old)).toBe(0)
  topic.records.length = 0
  expect(await enqueueScoredSince(pool, { since: 2000, organizationId: organization })).toBe(1)
  await expectRow(topic, recent, { session_id: recent })
  expect(topic.rows().has(old)).toBe(false)
  await decide(organization, old)
  await eventually(() => expect(topic.rows().has(old)).toBe(true))
})

/** Terminates the transaction of the active publisher, as when its process hangs for too long. */
async function loseLock(): Promise<void> {
  await world.pool.query(
    `select pg_terminate_backend(l.pid) from pg_locks l where l.locktype = 'advisory'
     and ((l.classid::bigint << 32) | l.objid::bigint) = $1 and l.database = (select oid from pg_database where datname = current_database())`,
    [lockKey('tidegate:facts')],
  )
}

test('a publisher that hung between reading and appending does not restore rows erased meanwhile', async () => {
  const topic = createTopic()
  const [organization, sid] = [await withPolicy(), session()]
  await decide(organization, sid)
  const { reached, release } = topic.hold(sid)
  const pool = createPool({ url: world.url, max: 2 })
  publish(topic, { pool })
  await reached
  await loseLock()
  publish(topic, { repeatMs: 3000 })
  await erase(organization, sid)
  await eventually(() => expect(topic.tombstones(sid)).toBe(1))
  // The append is the last thing that this publisher does.
  const closed = pool.end()
  release()
  await expectRow(topic, sid, { session_id: sid })
  await eventually(() => expect(topic.rows().get(sid)).toBeNull())
  await eventually(async () => expect(await notesOf(sid)).toBe(0))
  expect(topic.rows().get(sid)).toBeNull()
  await closed
})

test('an outdated row of a publisher that hung is replaced', async () => {
  const topic = createTopic()
  const [organization, sid] = [await withPolicy(), session()]
  await decide(organization, sid, { risk_score: 1 })
  const { reached, release } = topic.hold(sid)
  publish(topic)
  await reached
  await loseLock()
  publish(topic)
  await decide(organization, sid, { risk_score: 2 })
  await expectRow(topic, sid, { risk_score: 2 })
  const before = topic.of(sid).length
  release()
  await eventually(() => expect(topic.of(sid).length).toBe(before + 2))
  expect(topic.rows().get(sid)).toMatchObject({ risk_score: 2 })
})

test('a row that changes while it is published is published again immediately', async () => {
  const topic = createTopic()
  const [organization, sid] = [await withPolicy(), session()]
  await decide(organization, sid, { risk_score: 1 })
  const { reached, release } = topic.hold(sid)
  publish(topic)
  await reached
  await decide(organization, sid, { risk_score: 2 })
  release()
  await expectRow(topic, sid, { risk_score: 2 })
})

test('each partition gets a tombstone marker, always with the same key', async () => {
  const topic = createTopic()
  await withPolicy()
  publish(topic)
  const markers = () => topic.records.filter(({ key }) => !key.startsWith('sid_'))
  await eventually(() => expect(markers().length).toBeGreaterThanOrEqual(2 * partitions))
  const keys = new Set(markers().map(({ key }) => key))
  expect([...keys].map((key) => partitionOfKey(key, partitions)).sort()).toEqual([0, 1, 2])
  expect(markers().every(({ value }) => value === null)).toBe(true)
})
