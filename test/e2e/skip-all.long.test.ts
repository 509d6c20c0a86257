import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Position } from '../../infra/log/port.ts'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { causedNames, eventTopics } from '../../schemas/events.ts'
import { projections } from '../../services/server/dependencies.ts'
import { probeTopic } from '../../services/server/write-probe.ts'
import { type Cluster, clusterLogs, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { appendForeign, foreignValues } from '../support/foreign-records.ts'

const patient = { timeoutMs: 120_000, intervalMs: 500 }
const topics = [...new Set(Object.values(eventTopics))]
/** Of a type that each reader of the topic looks at. */
const typeIn = (topic: string) =>
  [...causedNames, ...Object.keys(eventTopics)].find(
    (name) => Object(eventTopics)[name] === topic,
  ) ?? ''
const printed = z.object({
  unreadable: z.string().optional(),
  position: z.object({ topic: z.string(), partition: z.number(), offset: z.number() }),
})
const observations = { version: 1, elapsed_ms: 5 } as const

describe.each(clusterLogs())('garbage in all topics at once, with traffic, %s', (log) => {
  let cluster: Cluster
  let folder: string
  const opened: { sessionId: string; finish: () => Promise<unknown> }[] = []
  const traffic = new AbortController()
  let sending: Promise<void>

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'skip-all-'))
    cluster = await startCluster({ log, processes: 2 })
    sending = send()
  }, 120_000)
  afterAll(async () => {
    traffic.abort()
    await sending?.catch(() => {})
    await cluster?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  /** Sessions come all the time; while a partition stands still, some are refused. */
  async function send(): Promise<void> {
    while (!traffic.signal.aborted) {
      await visit().catch(() => {})
      await delay(100)
    }
  }

  async function visit(): Promise<void> {
    const client = createCollectClient({
      endpoint: cluster.baseUrls[opened.length % 2] ?? '',
      publishableKey: cluster.owner.publishable.key,
      sdk: { name: 'test', version: '1', platform: 'web' },
      page: { url: 'https://shop.example/' },
      fetch,
    })
    const { sessionId } = await client.open()
    let done: Promise<unknown> | undefined
    opened.push({ sessionId, finish: () => done ?? client.requestResult(observations) })
    const result = client.requestResult(observations)
    await result
    done = result
  }

  const readiness = (index: number) => cluster.fetch(index, '/readyz')

  async function unreadableIn(topic: string): Promise<Position[]> {
    const { stdout } = await cluster.cli(['events', '--topic', topic])
    const lines = stdout.split('\n').filter(Boolean)
    const all = lines.map((line) => printed.parse(JSON.parse(line)))
    return all.flatMap(({ unreadable, position }) => (unreadable === undefined ? [] : [position]))
  }

  async function isShown(sessionId: string): Promise<boolean> {
    const headers = { authorization: `Bearer ${cluster.owner.secret.key}` }
    return (await cluster.fetch(0, `/v1/sessions/${sessionId}`, { headers })).status === 200
  }

  it('stops servers, loudly', async () => {
    await eventually(() => expect(opened.length).toBeGreaterThan(3), patient)
    const values = Object.values(foreignValues)
    await appendForeign(
      cluster,
      [...topics, probeTopic].flatMap((topic) =>
        values.map((value, i) => ({
          topic,
          key: `foreign ${i}`,
          value,
          headers: { event_type: typeIn(topic) },
        })),
      ),
    )
    await eventually(async () => {
      const bodies = await Promise.all([0, 1].map(async (index) => (await readiness(index)).text()))
      expect(bodies.join()).toContain('Not ready: consumers')
    }, patient)
  }, 180_000)

  it('is recovered by the documented command alone', async () => {
    const skipped: Position[] = []
    for (const topic of topics)
      for (const { partition, offset } of await unreadableIn(topic)) {
        const place = [topic, String(partition), String(offset)]
        const { code, stderr } = await cluster.cli([
          'log',
          'skip',
          ...place,
          '--reason',
          'written by mistake',
        ])
        expect({ place, code, stderr }).toEqual({ place, code: 0, stderr: '' })
        skipped.push({ topic, partition, offset })
      }
    expect(new Set(skipped.map(({ topic }) => topic))).toEqual(new Set(topics))
    for (const index of [0, 1])
      await eventually(async () => expect((await readiness(index)).status).toBe(200), patient)
  }, 400_000)

  it('and every session that came meanwhile gets its result', async () => {
    traffic.abort()
    await sending
    for (const { finish } of opened) await eventually(finish, patient)
    for (const { sessionId } of opened)
      await eventually(
        async () => expect([sessionId, await isShown(sessionId)]).toEqual([sessionId, true]),
        patient,
      )
  }, 300_000)

  it.each([...projections.map(({ name }) => name), 'scoring'])(
    'a rebuild of %s leaves it out',
    async (name) => {
      expect(await cluster.cli(['rebuild', name])).toMatchObject({ code: 0 })
    },
    120_000,
  )

  it('and so does a restore of data keys', async () => {
    const file = path.join(folder, 'keys')
    const { keys } = await cluster.operate<{ keys: number }>('data-keys', 'backup', file)
    expect(await cluster.operate('data-keys', 'restore', file)).toMatchObject({
      keys,
      added: 0,
      erased: 0,
    })
  }, 120_000)
})
