import { pino } from 'pino'
import { expect } from 'vitest'
import { openKafkaLog } from '../../../infra/log/kafka/log.ts'
import { eventually } from '../../support/eventually.ts'
import { startKafkaBroker } from '../../support/kafka-broker.ts'
import { needs } from '../../support/needs.ts'
import { consumed, expectDown, record, topic } from '../../support/outage.ts'

const { test } = needs('kafka-jars')
const logger = pino({ level: 'silent' })

test('kafka: appends fail while the broker hangs; what is confirmed afterwards is stored', async () => {
  const broker = await startKafkaBroker({ logger })
  const log = await openKafkaLog({ brokers: [broker.brokers], logger })
  await log.ensureTopics([{ topic, partitions: 3 }])
  await consumed(log, async (values) => {
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
