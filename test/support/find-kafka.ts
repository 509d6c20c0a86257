import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { pino } from 'pino'
import { freePort } from '../../infra/local/free-port.ts'
import { canRunKafkaJars, startKafkaBroker } from '../../infra/local/kafka-broker.ts'

export interface TestKafka {
  brokers: string
  stop(): Promise<void>
}

const missing =
  'Kafka: every test that needs it is SKIPPED: KAFKA_BROKERS is not set, no Docker daemon answers, and there is ' +
  'no Java 17 with Maven.'

/**
 * The Kafka that tests use: KAFKA_BROKERS, else a container, else jars by Maven with its data in `folder`. One
 * started here may still be starting when this resolves (see kafkaIsUp). null where there is none; with CI set that is an error.
 */
export async function findKafka(folder: string): Promise<TestKafka | null> {
  const given = process.env.KAFKA_BROKERS
  if (given) return { brokers: given, stop: async () => {} }
  const port = await freePort()
  if (await hasDocker()) {
    const { startKafkaContainer } = await import('./kafka-container.ts')
    return starting(port, () => startKafkaContainer(port))
  }
  if (await canRunKafkaJars()) {
    const logger = pino({ level: 'warn' })
    return starting(port, (signal) => startKafkaBroker({ port, folder, logger, signal }))
  }
  if (process.env.CI) throw new Error(missing)
  console.warn(missing)
  return null
}

/** testcontainers takes seconds to load, so the daemon is asked here. */
const hasDocker = (): Promise<boolean> =>
  promisify(execFile)('docker', ['version', '--format', '{{.Server.Version}}'], { timeout: 5000 }).then(
    () => true,
    () => false,
  )

function starting(
  port: number,
  start: (signal: AbortSignal) => Promise<{ stop(): Promise<void> }>,
): TestKafka {
  const giveUp = new AbortController()
  const broker = start(giveUp.signal).catch((error) => {
    if (!giveUp.signal.aborted) console.error('Kafka did not start; tests that need it will fail:', error)
    return undefined
  })
  return {
    brokers: `127.0.0.1:${port}`,
    async stop() {
      giveUp.abort()
      await (await broker)?.stop()
    },
  }
}
