import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pino } from 'pino'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../infra/local/embedded-postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A superuser's URL; use createTestDatabase rather than this. */
    postgresUrl: string
    /** null where no Kafka can be had. */
    kafkaBrokers: string | null
  }
}

const logger = pino({ level: 'warn' })

/** Starts what the whole test run shares; vitest calls the function it returns when the run is over. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(path.join(tmpdir(), `tidegate-test-${process.pid}-`))
  // PostgreSQL may run as another user, who must be able to enter.
  await chmod(folder, 0o755)
  const postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, 'postgres'), logger })
  project.provide('postgresUrl', postgres.url)
  project.provide('kafkaBrokers', null)
  return async () => {
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }
}
