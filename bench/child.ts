import { spawn } from 'node:child_process'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { endChild } from '../test/support/end-child.ts'
import { cpuMicros, memory, resetPeak } from './procfs.ts'

const root = path.resolve(import.meta.dirname, '..')

/** Program under measurement, in a separate process. */
export interface Child {
  url: string
  pid: number
  stop(): Promise<void>
}

/** Starts a script of this repository and waits for its line `... ready: URL`. */
export async function startChild(args: string[], env: Record<string, string>): Promise<Child> {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const lines: string[] = []
  const onLine = (line: string) => {
    lines.push(line)
    const url = /ready: (\S+)/.exec(line)?.[1]
    if (url) resolve(url)
  }
  createInterface(child.stdout).on('line', onLine)
  createInterface(child.stderr).on('line', (line) => lines.push(line))
  child.once('exit', (code) =>
    reject(new Error(`${args.join(' ')} ended with ${code}:\n${lines.slice(-20).join('\n')}`)),
  )
  const url = await promise
  return {
    url,
    pid: child.pid ?? 0,
    stop: () => endChild(child),
  }
}

/** Resources that a process used for a piece of work. */
export interface Cost {
  cpuMicros: number
  peakBytes: number
}

/** Runs `work` and measures the resources that the child used meanwhile. */
export async function costOf<T>(
  { pid }: Child,
  work: () => Promise<T>,
): Promise<Cost & { result: T }> {
  resetPeak(pid)
  const before = cpuMicros(pid)
  const result = await work()
  return { result, cpuMicros: cpuMicros(pid) - before, peakBytes: memory(pid).peak }
}
