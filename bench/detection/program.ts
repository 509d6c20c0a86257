import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

export interface ProgramOptions {
  command: string[]
  /** Working folder of the program. */
  folder: string
  env: Record<string, string>
}

/** Program in its own process group, so that its children end with it. */
export interface Program {
  /** Writes a line to its standard input. */
  tell(line: string): void
  /** Rejects when the program has exited, with the end of its output. */
  ended: Promise<never>
  /** Terminates the program, and kills its process group after three seconds. */
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
  // The program may have exited.
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
    // The process group no longer exists.
  }
}
