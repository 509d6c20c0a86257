import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { pino } from 'pino'
import { freePort } from '../../infra/local/free-port.ts'
import { startKafkaBroker } from './kafka-broker.ts'

export interface TestKafka {
  brokers: string
  stop(): Promise<void>
}

/**
 * Returns the Kafka for tests: KAFKA_BROKERS, else a container, else jars from Maven with data in `folder`. It may
 * still be starting (see `kafkaIsUp`).
 */
export async function findKafka(folder: string): Promise<TestKafka> {
  const given = process.env.KAFKA_BROKERS
  if (given) return { brokers: given, stop: async () => {} }
  const port = await freePort()
  if (await hasContainers()) {
    const { startKafkaContainer } = await import('./kafka-container.ts')
    return starting(port, () => startKafkaContainer(port))
  }
  const logger = pino({ level: 'warn' })
  return starting(port, (signal) => startKafkaBroker({ port, folder, logger, signal }))
}

/** Asks the daemon directly, because testcontainers takes seconds to load. */
export const hasContainers = (): Promise<boolean> =>
  promisify(execFile)('docker', ['version', '--format', '{{.Server.Version}}'], {
    timeout: 5000,
  }).then(
    () => true,
    () => false,
  )

function starting(
  port: number,
  start: (signal: AbortSignal) => Promise<{ stop(): Promise<void> }>,
): TestKafka {
  const giveUp = new AbortController()
  const broker = start(giveUp.signal).catch((error) => {
    if (!giveUp.signal.aborted)
      console.error('Kafka did not start; tests that need it will fail:', error)
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
