import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Position } from '../../infra/log/port.ts'
import { causedNames, eventTopics } from '../../schemas/events.ts'
import { probeTopic } from '../../services/server/write-probe.ts'
import { jsonLines } from '../support/cli.ts'
import { type Cluster, clusterLogs, startCluster } from '../support/cluster.ts'
import { createTestClient } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { foreignValues } from '../support/foreign-records.ts'
import { metricOf } from '../support/metrics.ts'
import { rebuildable, rebuildIsEqual } from '../support/roles.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const topic = 'tidegate.sessions.v1'
const topics = [...new Set(Object.values(eventTopics))]
const [foreignValue = Buffer.alloc(0)] = Object.values(foreignValues)
const observations = { version: 1, elapsed_ms: 5 } as const
const patient = { timeoutMs: 120_000, intervalMs: 200 }

interface Printed {
  type: string
  position: Position
  unreadable?: string
}

/** Returns a type that each reader of the topic looks at. */
const typeIn = (name: string): string =>
  [...causedNames, ...Object.keys(eventTopics)].find(
    (type) => Object(eventTopics)[type] === name,
  ) ?? ''

describe.each(clusterLogs())('a record that nobody can read, on %s', (log) => {
  let cluster: Cluster
  let at: Position
  const folder = temporaryFolder('skip')

  beforeAll(async () => {
    cluster = await startCluster({ log })
  }, 120_000)
  afterAll(() => cluster?.stop())

  const skip = (
    { topic, partition, offset }: Pick<Position, 'topic' | 'partition' | 'offset'>,
    ...flags: string[]
  ) => cluster.cli(['log', 'skip', topic, String(partition), String(offset), ...flags])

  async function eventsIn(name: string): Promise<Printed[]> {
    const { stdout } = await cluster.cli(['events', '--topic', name])
    return jsonLines(stdout)
  }

  const isShown = async (id: string) => (await cluster.ask(`/v1/sessions/${id}`)).status === 200

  it('stops its partition, and is left out by a command that says why', async () => {
    const client = createTestClient(cluster)
    const { sessionId } = await client.open()
    // Appends an unreadable record to the topic of the skips, too.
    const foreign = { key: sessionId, value: foreignValue, headers: { by: 'x' } }
    const topics = [topic, 'tidegate.operations.v1'] as const
    const records = topics.map((name) => ({ ...foreign, topic: name }))
    const [mine] = await (await cluster.log()).append(records)
    if (!mine) throw new Error('nothing was appended')
    at = mine
    client.requestResult(observations).catch(() => {})
    const lagOf = (group: string, unit = 'records') =>
      metricOf(cluster.baseUrl, `tidegate_consumer_lag_${unit}{group="${group}"`)

    await eventually(async () => expect(await cluster.readiness()).toMatch(/^503/), patient)
    expect(await isShown(sessionId)).toBe(false)
    for (const group of ['sessions', 'planner'])
      for (const unit of ['records', 'seconds'])
        await eventually(async () => expect(await lagOf(group, unit)).toBeGreaterThan(0), patient)
    expect(await lagOf('scoring')).toBe(0)
    expect(await skip(at, '--reason', 'a typo', '--by', 'Ada')).toMatchObject({
      code: 0,
      stderr: '',
    })
    await eventually(async () => expect(await cluster.readiness()).toBe('200 ok'), patient)
    await eventually(async () => expect(await isShown(sessionId)).toBe(true), patient)
    for (const group of ['sessions', 'planner'])
      await eventually(async () => expect(await lagOf(group)).toBe(0), patient)
  }, 60_000)

  it('is kept as a fact, and the audit log says who left it out', async () => {
    const { stdout } = await cluster.cli(['log', 'skipped'])
    const [unreadable, fact] = jsonLines<{ data?: object }>(stdout)
    const value = foreignValue.toString('base64')
    const actor = { type: 'operator', id: 'log skip' }
    expect(unreadable).toMatchObject({ unreadable: expect.any(String), value })
    expect(fact?.data).toMatchObject({
      skipped_topic: topic,
      skipped_partition: at.partition,
      skipped_offset: at.offset,
      reason: 'a typo',
      skipped_by: 'Ada',
      record_value: value,
      record_headers: { by: 'x' },
      actor,
      request_id: null,
    })
    expect(await cluster.operate('audit', '--limit', '1')).toMatchObject([
      {
        type: 'RecordSkipped',
        subject_id: `${topic}/${at.partition}`,
        actor,
        organization_id: null,
      },
    ])
  }, 60_000)

  it('is told from one that can be read', async () => {
    const all = await eventsIn(topic)
    expect(all.filter(({ unreadable }) => unreadable)).toMatchObject([{ position: at }])
    const scored = all.find(({ type }) => type === 'SessionScored')
    if (!scored) throw new Error('nothing was scored')
    expect(await skip(scored.position, '--reason', 'none')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/is readable \(SessionScored\)/),
    })
  }, 60_000)

  describe('in all topics at once, with two servers and traffic', () => {
    const opened: { sessionId: string; finish: () => Promise<unknown> }[] = []
    const traffic = new AbortController()
    let sending: Promise<void>

    beforeAll(async () => {
      cluster.baseUrls.push((await cluster.serve()).baseUrl)
      sending = send()
    }, 60_000)
    afterAll(async () => {
      traffic.abort()
      await sending?.catch(() => {})
    })

    /** Sessions come all the time; while a partition stands still, some are refused. */
    async function send(): Promise<void> {
      while (!traffic.signal.aborted) {
        await visit().catch(() => {})
        await delay(100)
      }
    }

    async function visit(): Promise<void> {
      const baseUrl = cluster.baseUrls[opened.length % 2] ?? ''
      const client = createTestClient({ baseUrl, owner: cluster.owner })
      const { sessionId } = await client.open()
      let done: Promise<unknown> | undefined
      opened.push({ sessionId, finish: () => done ?? client.requestResult(observations) })
      const result = client.requestResult(observations)
      await result
      done = result
    }

    it('stops servers, loudly', async () => {
      await eventually(() => expect(opened.length).toBeGreaterThan(3), patient)
      const records = [...topics, probeTopic].flatMap((name) =>
        Object.values(foreignValues).map((value, i) => ({
          topic: name,
          key: `foreign ${i}`,
          value,
          headers: { event_type: typeIn(name) },
        })),
      )
      await (await cluster.log()).append(records)
      await eventually(async () => {
        const states = await Promise.all([0, 1].map((index) => cluster.readiness(index)))
        expect(states.join()).toContain('Not ready: consumers')
      }, patient)
    }, 180_000)

    it('is recovered by the documented command alone', async () => {
      const skipped = { topic, partition: at.partition, offset: at.offset }
      for (const name of topics) {
        const unreadable = (await eventsIn(name)).filter(
          (event) => event.unreadable && !isDeepStrictEqual(event.position, skipped),
        )
        expect(unreadable.length).toBeGreaterThan(0)
        for (const { position } of unreadable)
          expect(await skip(position, '--reason', 'written by mistake')).toMatchObject({ code: 0 })
      }
      for (const index of [0, 1])
        await eventually(async () => expect(await cluster.readiness(index)).toBe('200 ok'), patient)
    }, 400_000)

    it('gives every session that came meanwhile its result', async () => {
      traffic.abort()
      await sending
      for (const { finish } of opened) await eventually(finish, patient)
      for (const { sessionId } of opened)
        await eventually(async () => expect(await isShown(sessionId)).toBe(true), patient)
    }, 300_000)

    it.each(rebuildable)(
      'is left out by a rebuild of %s',
      (name) => rebuildIsEqual(cluster.settings, name),
      120_000,
    )

    it('is left out by a restore of data keys', async () => {
      const file = path.join(folder, 'keys')
      const { keys } = await cluster.operate<{ keys: number }>('data-keys', 'backup', file)
      expect(await cluster.operate('data-keys', 'restore', file)).toMatchObject({
        keys,
        added: 0,
        erased: 0,
      })
    }, 120_000)
  })
})
