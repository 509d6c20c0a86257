import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { EnvironmentKeys } from '../../services/cli/credentials.ts'
import { refuseSecretKeys, sweepInstallation, sweepTopics } from './key-sweep.ts'
import { createTestDatabase } from './postgres.ts'
import { startServerProcess } from './server-process.ts'

export interface Credentials {
  base_url: string
  organization_id: string
  live: EnvironmentKeys
  test: EnvironmentKeys
}

export interface RunningTidegate {
  baseUrl: string
  dataDir: string
  credentials: Credentials
  pid: number
  /** Returns the output so far. */
  output(): string
  /**
   * Sends SIGTERM, and deletes the data unless `dataDir` was given. Resolves with the exit code; rejects if a key
   * leaked.
   */
  stop(): Promise<number | null>
  /** Sends SIGKILL without cleaning up. */
  kill(): Promise<void>
}

export interface StartOptions {
  env?: Record<string, string>
  /** Data folder, kept after `stop` for another start. */
  dataDir?: string
  /** Starts a separate Postgres even without `dataDir`, for tests of Postgres or its load. */
  hasPostgres?: boolean
}

/**
 * Starts `tidegate dev` on a free port and waits until it is ready. Without `dataDir`, uses the test run's Postgres,
 * because an embedded one costs about six seconds of CPU time.
 */
export async function startTidegate({
  env = {},
  dataDir,
  hasPostgres = dataDir !== undefined,
}: StartOptions = {}): Promise<RunningTidegate> {
  const folder = dataDir ?? (await mkdtemp(path.join(tmpdir(), 'tidegate-test-')))
  const database = hasPostgres || env.DATABASE_URL ? undefined : await createTestDatabase()
  const settings = { ...(database && { DATABASE_URL: database.url }), ...env, DATA_DIR: folder }
  const server = await startServerProcess(['dev'], settings)
  const credentials: Credentials = JSON.parse(
    await readFile(path.join(folder, 'credentials.json'), 'utf8'),
  )
  return {
    baseUrl: server.baseUrl,
    dataDir: folder,
    credentials,
    pid: server.pid,
    output: server.output,
    async stop() {
      const leak = await sweepInstallation(folder).then(
        () => undefined,
        (error: unknown) => error,
      )
      const code = await server.end('SIGTERM')
      await database?.drop()
      if (!dataDir) await rm(folder, { recursive: true, force: true })
      const { KAFKA_BROKERS: brokers, KAFKA_TOPIC_PREFIX: prefix } = env
      if (brokers && prefix) await sweepTopics({ brokers, prefix })
      // Except for the login link, which is printed once.
      refuseSecretKeys('the output of the server', server.output().replace(/#code=conlog_\w+/, ''))
      if (leak) throw leak
      return code
    },
    async kill() {
      await server.end('SIGKILL')
    },
  }
}

/** Returns the login link that the server printed. It works once. */
export const loginLinkOf = ({ output }: Pick<RunningTidegate, 'output'>): string =>
  /http\S+\/console#code=\S+/.exec(output())?.[0] ?? ''
