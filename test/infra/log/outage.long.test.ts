import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { expect } from 'vitest'
import { freePort } from '../../../infra/local/free-port.ts'
import { openKafkaLog } from '../../../infra/log/kafka/log.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { eachBatch } from '../../support/each-batch.ts'
import { eventually } from '../../support/eventually.ts'
import { startKafkaBroker } from '../../support/kafka-broker.ts'
import { needs } from '../../support/needs.ts'
import { createAbsentProxy } from '../../support/tcp-proxy.ts'
import { expectDown, record, topic, whileConsuming } from './outage.ts'

const { test } = needs('kafka-jars')
const logger = pino({ level: 'silent' })

test('kafka: appends fail while the broker hangs, and confirmed ones are stored afterwards', async () => {
  const broker = await startKafkaBroker({ logger })
  const log = await openKafkaLog({ brokers: [broker.brokers], logger })
  await log.ensureTopics([{ topic, partitions: 3 }])
  await whileConsuming(log, async (values) => {
    await log.append([record('before')])
    await eventually(() => expect(values).toEqual(['before']))
    process.kill(broker.pid, 'SIGSTOP')
    await expectDown(log)
    process.kill(broker.pid, 'SIGCONT')
    await eventually(() => log.append([record('after')]), { timeoutMs: 20_000 })
    await log.append(['1', '2', '3'].map(record))
    const expected = ['before', 'after', '1', '2', '3']
    await eventually(() => expect(values).toEqual(expect.arrayContaining(expected)), {
      timeoutMs: 20_000,
    })
  })
  await log.close()
  await broker.stop()
}, 90_000)

// Records of all three partitions.
const values = ['1', '2', '3', '4', '5', '6']

async function reading(log: EventLog, group: string) {
  let seen: string[] = []
  const handle = eachBatch(({ records }) => {
    seen.push(...records.map(({ value }) => value.toString()))
  })
  const consumer = await log.consume({ group, topics: [topic], handle })
  return {
    ...consumer,
    async hasAll() {
      await eventually(() => expect(new Set(seen)).toEqual(new Set(values)), { timeoutMs: 60_000 })
      seen = []
    },
  }
}

test('kafka: a consumer stopped during an outage does not rejoin its group afterwards', async () => {
  const [port, advertised] = [await freePort(), await freePort()]
  const listeners = [{ name: 'FAR', protocol: 'PLAINTEXT', port, advertised }]
  const broker = await startKafkaBroker({ logger, listeners })
  const open = (brokers: string) => openKafkaLog({ brokers: [brokers], logger })
  const [near, far] = [await open(broker.brokers), await open(`127.0.0.1:${advertised}`)]
  await near.ensureTopics([{ topic, partitions: 3 }])
  const appendAll = () => near.append(values.map(record))
  const proxy = createAbsentProxy(`tcp://127.0.0.1:${port}`, advertised)
  await proxy.comes()
  await appendAll()
  // kafkajs crashes and restarts about every two seconds, so stop consumers at different times in between.
  const leaving = Array.from({ length: 16 }, (_, i) => ({ group: `leaving${i}`, afterMs: i * 500 }))
  const left = await Promise.all(leaving.map(({ group }) => reading(far, group)))
  const waiting = await Promise.all(['w0', 'w1', 'w2', 'w3'].map((group) => reading(far, group)))
  await Promise.all([...left, ...waiting].map((consumer) => consumer.hasAll()))
  await proxy.goes()
  const stops = left.map((consumer, i) => delay(leaving[i]?.afterMs).then(consumer.stop))
  await delay(leaving.at(-1)?.afterMs)
  await proxy.comes()
  await Promise.all(stops)
  await appendAll()
  // By then, stopped consumers would have rejoined too.
  await Promise.all(waiting.map((consumer) => consumer.hasAll()))
  const next = await Promise.all(leaving.map(({ group }) => reading(near, group)))
  await Promise.all(next.map((consumer) => consumer.hasAll()))
  await Promise.all(next.map((consumer) => consumer.stop()))
  await Promise.all([near.close(), far.close()])
  await proxy.goes()
  await broker.stop()
}, 240_000)
