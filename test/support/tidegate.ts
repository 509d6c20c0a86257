import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { refuseSecretKeys, sweepInstallation, sweepTopics } from './key-sweep.ts'

export interface Credentials {
  base_url: string
  organization_id: string
  live: { publishable_key: string; secret_key: string }
  test: { publishable_key: string; secret_key: string }
}

export interface RunningTidegate {
  baseUrl: string
  dataDir: string
  credentials: Credentials
  pid: number
  /** Everything the process printed so far. */
  output(): string
  /** SIGTERM; resolves with the exit code. Removes the data unless it was given. Rejects when a secret key leaked. */
  stop(): Promise<number | null>
  /** SIGKILL, nothing is cleaned up. */
  kill(): Promise<void>
}

export interface StartOptions {
  env?: Record<string, string>
  /** Given = kept after stop, so that a second start finds the same data. */
  dataDir?: string
}

const root = path.resolve(import.meta.dirname, '../..')

/** Starts `tidegate dev` as a process of its own on a free port and waits until it is ready. */
export async function startTidegate({ env = {}, dataDir }: StartOptions = {}): Promise<RunningTidegate> {
  const folder = dataDir ?? (await mkdtemp(path.join(tmpdir(), 'tidegate-test-')))
  const child = spawn(path.join(root, 'node_modules/.bin/node'), ['services/cli/main.ts', 'dev'], {
    cwd: root,
    env: { ...process.env, PORT: '0', LOG_LEVEL: 'warn', ...env, DATA_DIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const baseUrl = await ready(child, lines)
  const credentials: Credentials = JSON.parse(await readFile(path.join(folder, 'credentials.json'), 'utf8'))
  return {
    baseUrl,
    dataDir: folder,
    credentials,
    pid: child.pid ?? 0,
    output: () => lines.join('\n'),
    async stop() {
      const leak = await sweepInstallation(folder).then(
        () => undefined,
        (error: unknown) => error,
      )
      const code = await end(child, 'SIGTERM')
      if (!dataDir) await rm(folder, { recursive: true, force: true })
      const { KAFKA_BROKERS: brokers, KAFKA_TOPIC_PREFIX: prefix } = env
      if (brokers && prefix) await sweepTopics({ brokers, prefix })
      refuseSecretKeys('the output of the server', lines.join('\n'))
      if (leak) throw leak
      return code
    },
    async kill() {
      await end(child, 'SIGKILL')
    },
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }
  return child.exitCode
}

function ready(child: ChildProcess, lines: string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const { stdout, stderr } = child
  if (!stdout || !stderr) throw new Error('the child has no output streams')
  createInterface(stdout).on('line', (line) => {
    lines.push(line)
    const url = /^Tidegate is ready: (\S+)/.exec(line)?.[1]
    if (url) resolve(url)
  })
  createInterface(stderr).on('line', (line) => lines.push(line))
  child.once('exit', (code) =>
    reject(new Error(`tidegate ended with ${code} before it was ready:\n${lines.join('\n')}`)),
  )
  return promise
}
