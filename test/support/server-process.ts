import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { freePort } from '../../infra/local/free-port.ts'
import { endChild } from './end-child.ts'
import { spawnProgram } from './program.ts'

export interface ServerProcess {
  /** URL of the server. */
  baseUrl: string
  pid: number
  /** Returns the output so far. */
  output(): string
  /** Resolves with the exit code when the server exits. */
  exit: Promise<number | null>
  /** Sends the signal. Resolves with the exit code; null after SIGKILL. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>
}

/** Limits that are too high for any test, even on a busy machine. */
const unlimited = {
  // Prevents requests to other machines.
  AGENT_LOOKUPS: 'off',
  RATE_LIMIT_SECRET: '1000000',
  RATE_LIMIT_PUBLISHABLE: '1000000',
  COLLECT_MAX_BACKLOG_MS: '600000',
  COLLECT_SOURCE_MB_PER_HOUR: '1000000',
  HAND_OFF_TIMEOUT_MS: '10000',
}

/**
 * Starts `tidegate ...args` in a separate process on a free port and waits until it is ready. `baseUrl` is its port's,
 * even with PUBLIC_URL.
 */
export async function startServerProcess(
  args: string[],
  env: Record<string, string>,
): Promise<ServerProcess> {
  const port = env.PUBLIC_URL === undefined ? 0 : await freePort()
  const child = spawnProgram(args, { ...unlimited, PORT: String(port), LOG_LEVEL: 'warn', ...env })
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const lines: string[] = []
  const printedUrl = await ready(child, lines)
  const baseUrl = port === 0 ? printedUrl : `http://127.0.0.1:${port}`
  return {
    baseUrl,
    pid: child.pid ?? 0,
    output: () => lines.join('\n'),
    exit,
    async end(signal) {
      await endChild(child, signal)
      return child.exitCode
    },
  }
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
