import { chmod, mkdtemp, rm, symlink } from 'node:fs/promises'
import path from 'node:path'
import { pino } from 'pino'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../infra/local/embedded-postgres.ts'
import { bundleProgram, root } from '../../services/cli/package/program.ts'
import { findKafka } from './find-kafka.ts'
import { sweepTestDatabases } from './key-sweep.ts'
import { isProvided } from './needs/setup.ts'
import { createTemplate, onServer } from './server-databases.ts'
import { runFolderPrefix, sweepDeadRuns } from './sweep.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Superuser URL. Use `createTestDatabase` instead. */
    postgresUrl: string
    /** null if no test needs Kafka, or it is not available. Kafka may still be starting; see `kafkaIsUp`. */
    kafkaBrokers: string | null
    /** File with the bundled `tidegate` program. */
    program: string
  }
}

interface Services {
  postgresUrl: string
  kafkaBrokers: string | null
  program: string
  stop(): Promise<void>
}

interface Shared {
  services: Promise<Services>
  users: number
}

declare global {
  // Global, because each project loads this file again.
  var tidegateTestServices: Shared | undefined
}

/** Starts services shared by all projects. Vitest calls the returned function at the end of the run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const hasKafka = await isProvided('kafka')
  globalThis.tidegateTestServices ??= { services: start({ hasKafka }), users: 0 }
  const run = globalThis.tidegateTestServices
  run.users++
  const { postgresUrl, kafkaBrokers, program, stop } = await run.services
  project.provide('postgresUrl', postgresUrl)
  project.provide('kafkaBrokers', kafkaBrokers)
  project.provide('program', program)
  return async () => {
    if (--run.users === 0) await stop()
  }
}

async function start({ hasKafka }: { hasKafka: boolean }): Promise<Services> {
  await sweepDeadRuns()
  const folder = await mkdtemp(runFolderPrefix)
  // PostgreSQL may run as another user, who needs access to the folder.
  await chmod(folder, 0o755)
  // Hundreds of processes run the same program, so it is compiled only once.
  process.env.NODE_COMPILE_CACHE = path.join(folder, 'compile-cache')
  const logger = pino({ level: 'warn' })
  const [postgres, kafka, program] = await Promise.all([
    startEmbeddedPostgres({ dataDir: path.join(folder, 'postgres'), logger }),
    hasKafka ? findKafka(folder) : null,
    packedProgram(folder),
  ])
  const postgresUrl = postgres.socketUrl
  await makeForgetful(postgresUrl)
  await createTemplate(postgresUrl)
  return {
    postgresUrl,
    kafkaBrokers: kafka?.brokers ?? null,
    program,
    async stop() {
      const swept = sweepTestDatabases(postgresUrl)
      // The caller gets the error after the cleanup.
      await swept.catch(() => {})
      await Promise.all([postgres.stop(), kafka?.stop()])
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
      await swept
    },
  }
}

/** Bundles the program like its package, so that processes do not load hundreds of modules. */
async function packedProgram(folder: string): Promise<string> {
  const program = path.join(folder, 'program')
  await bundleProgram(program)
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  return path.join(program, 'program.mjs')
}

/** Disables durability. Tests of crashes start their own server. */
function makeForgetful(url: string): Promise<void> {
  return onServer(url, async (client) => {
    for (const setting of ['fsync', 'full_page_writes', 'synchronous_commit'])
      await client.query(`alter system set ${setting} = off`)
    // Keeps WAL files for tests that scan them, although each new database is a checkpoint.
    await client.query(`alter system set wal_keep_size = '512MB'`)
    await client.query('select pg_reload_conf()')
    // Makes the password cheap to check, because there are thousands of connections.
    const password = client.escapeLiteral(new URL(url).password)
    await client.query(`set scram_iterations = 1; alter role postgres password ${password}`)
  })
}
