import { spawn } from 'node:child_process'
import { once } from 'node:events'
import os from 'node:os'
import { text } from 'node:stream/consumers'
import type { Position } from '../../infra/log/port.ts'

/** A process starts as fast as another loads so many records. */
const recordsPerWorker = 10_000

/**
 * Loads the build in processes of the same program, each with the partitions of its share. The first that fails ends the
 * others, and its message is thrown. One alone is none: the caller loads as fast.
 */
export async function loadInWorkers(
  projection: string,
  target: Position[],
  workers: number | undefined,
): Promise<void> {
  const records = target.reduce((sum, { offset }) => sum + offset, 0)
  const partitions = new Set(target.map(({ partition }) => partition)).size
  const worthwhile = Math.ceil(records / recordsPerWorker)
  const count = Math.min(workers ?? Math.min(os.availableParallelism(), worthwhile), partitions)
  if (count < 2) return
  const ending = new AbortController()
  const running = Array.from({ length: count }, (_, index) =>
    runWorker(projection, { share: `${index}/${count}`, signal: ending.signal }),
  )
  try {
    await Promise.all(running)
  } finally {
    ending.abort()
    await Promise.allSettled(running)
  }
}

async function runWorker(
  projection: string,
  { share, signal }: { share: string; signal: AbortSignal },
): Promise<void> {
  const [program = ''] = process.argv.slice(1)
  const args = [...process.execArgv, program, 'rebuild', projection, '--share', share]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'pipe'] })
  const kill = () => child.kill('SIGKILL')
  signal.addEventListener('abort', kill, { once: true })
  const ended = once(child, 'close')
  const said = await text(child.stderr)
  const [code, by] = await ended
  signal.removeEventListener('abort', kill)
  if (code === 0) return
  throw new Error(
    said.trim().split('\n').at(-1) || `a process of the rebuild ended with ${by ?? code}`,
  )
}

/** Ends this process when the one ends that started it. */
export function endWithParent(): void {
  process.stdin.resume().once('close', () => process.exit(1))
  process.stdin.unref()
}
