import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

export interface ProgramOptions {
  command: string[]
  /** Where it leaves what it leaves. */
  folder: string
  env: Record<string, string>
}

/** A program in a process group of its own, so that what it starts ends with it. */
export interface Program {
  /** Writes a line to its standard input. */
  tell(line: string): void
  /** Rejects once it has ended, with the end of what it printed. */
  ended: Promise<never>
  /** Asks it to end, and after three seconds ends its whole group. */
  stop(): Promise<void>
}

export function startProgram({
  command: [file = '', ...args],
  folder,
  env,
}: ProgramOptions): Program {
  const child = spawn(file, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const keep = (data: Buffer) => lines.push(String(data))
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  // It may be gone when it is told something.
  child.stdin.on('error', () => {})
  const ended = Promise.race([once(child, 'exit'), once(child, 'error')]).then(([code]) => {
    throw new Error(`${file} ended (${code}): ${lines.join('').slice(-600)}`)
  })
  ended.catch(() => {})
  return {
    tell: (line) => void child.stdin.write(`${line}\n`),
    ended,
    async stop() {
      child.stdin.end()
      await Promise.race([ended.catch(() => {}), delay(3000)])
      killGroup(child)
      await Promise.race([ended.catch(() => {}), delay(2000)])
    },
  }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid) process.kill(-pid, 'SIGKILL')
  } catch {
    // The whole group is gone.
  }
}
