import { chmod, mkdtemp, rm } from 'node:fs/promises'
import path from 'node:path'
import { pino } from 'pino'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../infra/local/embedded-postgres.ts'
import { findKafka, kafkaIsUp } from './kafka.ts'
import { runFolderPrefix, sweepDeadRuns } from './sweep.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A superuser's URL; use createTestDatabase rather than this. */
    postgresUrl: string
    /** null where no Kafka can be had. */
    kafkaBrokers: string | null
  }
}

/** Starts what the whole test run shares; vitest calls the function it returns when the run is over. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await sweepDeadRuns()
  const folder = await mkdtemp(runFolderPrefix)
  // PostgreSQL may run as another user, who must be able to enter.
  await chmod(folder, 0o755)
  // Hundreds of servers and commands are started, all of the same program: it is compiled once.
  process.env.NODE_COMPILE_CACHE = path.join(folder, 'compile-cache')
  const logger = pino({ level: 'warn' })
  const [postgres, kafka] = await Promise.all([
    startEmbeddedPostgres({ dataDir: path.join(folder, 'postgres'), logger }),
    findKafka(folder),
  ])
  project.provide('postgresUrl', postgres.url)
  project.provide('kafkaBrokers', kafka?.brokers ?? null)
  if (kafka && usesKafkaFromTheStart()) await kafkaIsUp(kafka.brokers)
  return async () => {
    await Promise.all([postgres.stop(), kafka?.stop()])
    await rm(folder, { recursive: true, force: true })
  }
}

/** End-to-end tests start servers that expect a broker; others wait in openTestLogs while it starts. */
function usesKafkaFromTheStart(): boolean {
  const filters = process.argv.slice(2).filter((word) => !word.startsWith('-') && word !== 'run')
  return filters.length === 0 || filters.some((word) => /e2e|faults|contract/.test(word))
}
