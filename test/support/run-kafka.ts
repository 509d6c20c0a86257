import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { pino } from 'pino'
import { canRunKafkaJars, startKafkaBroker } from './kafka-broker.ts'

/**
 * `make run-kafka`: runs `tidegate dev` with Kafka without Docker. Both keep their data in DATA_DIR, which differs from that
 * of `make run`, because a database is bound to its log.
 */
const dataDir = path.resolve(process.env.DATA_DIR || '.tidegate/kafka')
if (!(await canRunKafkaJars())) {
  console.error(
    'make run-kafka needs Java 17 and, the first time, Maven. With a broker: KAFKA_BROKERS=host:9092 make run',
  )
  process.exit(1)
}
const logger = pino({ level: process.env.LOG_LEVEL || 'info' })
const broker = await startKafkaBroker({ logger, keepIn: path.join(dataDir, 'broker') })
try {
  const env = { ...process.env, DATA_DIR: dataDir, KAFKA_BROKERS: broker.brokers }
  const server = spawn(process.execPath, ['services/cli/main.ts', 'dev'], { env, stdio: 'inherit' })
  // The server gets Ctrl-C from the terminal, and this process must outlive it.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => server.kill('SIGTERM'))
  const [code] = await once(server, 'exit')
  process.exitCode = code ?? 1
} finally {
  await broker.stop()
}
