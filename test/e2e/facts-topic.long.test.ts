import path from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { visitorOf } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { type KafkaBroker, startKafkaBroker } from '../support/kafka-broker.ts'
import { createMarks } from '../support/marked/marks.ts'
import { filesOf, findMarked } from '../support/marked/scan.ts'
import { type MarkedVisitor, markedVisitor, visitMarked } from '../support/marked/visits.ts'
import { needs } from '../support/needs.ts'
import { silent } from '../support/projections.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const { describe, it } = needs('kafka-jars')
const patient = { timeoutMs: 120_000, intervalMs: 250 }

// All files of a broker of its own are searched.
describe('the topic of facts', () => {
  const everybody = Array.from({ length: 6 }, (_, n) =>
    markedVisitor(n, createMarks(`person ${n}`)),
  )
  const [gone, ...others] = everybody
  const folder = temporaryFolder('facts')
  let broker: KafkaBroker
  let cluster: Cluster

  beforeAll(async () => {
    broker = await startKafkaBroker({
      logger: silent,
      folder,
      // Indexes are made at their full size, and all of it is searched.
      properties: 'log.cleaner.backoff.ms=500\nlog.index.size.max.bytes=65536\n',
    })
    const env = {
      KAFKA_BROKERS: broker.brokers,
      KAFKA_TOPIC_PREFIX: 'facts.',
      TOPIC_PARTITIONS: '2',
      FACTS_GONE_WITHIN_MS: '16000',
      TRUSTED_PROXIES: '127.0.0.0/8',
    }
    cluster = await startCluster({ env })
  }, 180_000)
  afterAll(async () => {
    await cluster?.stop()
    await broker?.stop()
  })

  const policy = (...flags: string[]) =>
    cluster.operate('org', 'policy', cluster.owner.slug, ...flags)
  const factsFiles = () => filesOf(path.join(broker.dataDir, 'log'))
  async function* topicFiles() {
    for await (const place of factsFiles())
      if (place.name.includes('tidegate.facts.v1-')) yield place
  }
  const marksOf = (some: (MarkedVisitor | undefined)[]) => some.flatMap((one) => one?.marks ?? [])

  it('has no byte of an erased person in any file, with nothing else written', async () => {
    await policy('--facts', 'on', '--hidden-facts', 'none')
    const { baseUrl, owner } = cluster
    const server = { baseUrl, publishableKey: owner.publishable.key }
    for (const one of everybody) await visitMarked(one, server, 'web')
    await eventually(async () => {
      for (const one of everybody)
        expect(await findMarked(marksOf([one]), topicFiles())).not.toEqual([])
    }, patient)
    const visitor = await visitorOf(cluster, { sessionId: gone?.sessionIds[0] ?? '' })
    await cluster.read(`/v1/organizations/${owner.organizationId}/visitors/${visitor}`, {
      method: 'DELETE',
    })
    await eventually(
      async () => expect(await findMarked(marksOf([gone]), topicFiles())).toEqual([]),
      patient,
    )
    await eventually(
      async () =>
        expect(await findMarked(marksOf(others.slice(0, 1)), topicFiles())).not.toEqual([]),
      patient,
    )
  }, 240_000)

  it('and without the topic none of anybody', async () => {
    await policy('--facts', 'off')
    await eventually(
      async () => expect(await findMarked(marksOf(others), topicFiles())).toEqual([]),
      patient,
    )
  }, 180_000)
})
