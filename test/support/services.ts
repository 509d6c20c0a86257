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
    /** A superuser's URL; use createTestDatabase rather than this. */
    postgresUrl: string
    /** null where no test needs Kafka, or none can be had. It may still be starting: see kafkaIsUp. */
    kafkaBrokers: string | null
    /** The file that is the whole of `tidegate`. */
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
  // Each project loads this file anew: what they share is kept outside of it.
  var tidegateTestServices: Shared | undefined
}

/** Starts what all projects of a test run share; vitest calls the function it returns when the run is over. */
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
  // PostgreSQL may run as another user, who must be able to enter.
  await chmod(folder, 0o755)
  // Hundreds of servers and commands are started, all of the same program: it is compiled once.
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
      // It is the caller who hears of it, when all is cleaned up.
      await swept.catch(() => {})
      await Promise.all([postgres.stop(), kafka?.stop()])
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
      await swept
    },
  }
}

/** The program as its package has it: no command or server strips and resolves hundreds of modules. */
async function packedProgram(folder: string): Promise<string> {
  const program = path.join(folder, 'program')
  await bundleProgram(program)
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  return path.join(program, 'program.mjs')
}

/** Nothing here has to survive a crash of Postgres or of the machine. Where that is tested, a server of its own runs. */
function makeForgetful(url: string): Promise<void> {
  return onServer(url, async (client) => {
    for (const setting of ['fsync', 'full_page_writes', 'synchronous_commit'])
      await client.query(`alter system set ${setting} = off`)
    // Whoever looks for something in the WAL finds it there, though each new database is a checkpoint.
    await client.query(`alter system set wal_keep_size = '512MB'`)
    await client.query('select pg_reload_conf()')
    // A password that is cheap to check: thousands of connections are made.
    const password = client.escapeLiteral(new URL(url).password)
    await client.query(`set scram_iterations = 1; alter role postgres password ${password}`)
  })
}
