import { pino } from 'pino'
import { freePort } from '../../infra/local/free-port.ts'
import { startKafkaBroker } from '../../infra/local/kafka-broker.ts'
import { canRunKafkaJars } from '../../infra/local/kafka-jars.ts'
import { createKafkaClient } from '../../infra/log/kafka/client.ts'
import { eventually } from './eventually.ts'
import { hasDocker, startKafkaContainer } from './kafka-container.ts'

export interface TestKafka {
  brokers: string
  stop(): Promise<void>
}

const missing =
  'Kafka: every test that needs it is SKIPPED: KAFKA_BROKERS is not set, no Docker daemon answers, and there is ' +
  'no Java 17 with Maven.'

/**
 * The Kafka that tests use: KAFKA_BROKERS, else a container, else jars by Maven. One started here may still be
 * starting when this resolves (see kafkaIsUp). null where there is none; with CI set that is an error.
 */
export async function findKafka(): Promise<TestKafka | null> {
  const given = process.env.KAFKA_BROKERS
  if (given) return { brokers: given, stop: async () => {} }
  const port = await freePort()
  if (await hasDocker()) return starting(port, startKafkaContainer(port))
  if (await canRunKafkaJars()) {
    return starting(port, startKafkaBroker({ port, logger: pino({ level: 'warn' }) }))
  }
  if (process.env.CI) throw new Error(missing)
  console.warn(missing)
  return null
}

function starting(port: number, broker: Promise<{ stop(): Promise<void> }>): TestKafka {
  const ready = broker.catch((error) => {
    console.error('Kafka did not start; the tests that need it will fail:', error)
    return undefined
  })
  return {
    brokers: `127.0.0.1:${port}`,
    async stop() {
      await (await ready)?.stop()
    },
  }
}

/** Waits until the broker answers. */
export async function kafkaIsUp(brokers: string): Promise<void> {
  const kafka = createKafkaClient({
    brokers: brokers.split(','),
    logger: pino({ level: 'silent' }),
    retries: 0,
  })
  await eventually(
    async () => {
      const admin = kafka.admin()
      try {
        await admin.connect()
        await admin.describeCluster()
      } finally {
        await admin.disconnect().catch(() => {})
      }
    },
    { timeoutMs: 60_000, intervalMs: 200 },
  )
}
