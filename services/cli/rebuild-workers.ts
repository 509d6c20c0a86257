import { spawn } from 'node:child_process'
import { once } from 'node:events'
import os from 'node:os'
import { text } from 'node:stream/consumers'
import type { Position } from '../../infra/log/port.ts'

/** Number of records that a process can load while another process starts. */
const recordsPerWorker = 10_000

/**
 * Loads the build in worker processes, each with a share of the partitions. If one fails, kills the others and throws its
 * message. Does nothing if a single worker would be enough: the caller then loads the records itself.
 */
export async function loadInWorkers(
  projection: string,
  target: Position[],
  workers: number | undefined,
): Promise<void> {
  const records = target.reduce((sum, { offset }) => sum + offset, 0)
  const partitions = new Set(target.map(({ partition }) => partition)).size
  const usefulWorkers = Math.ceil(records / recordsPerWorker)
  const count = Math.min(workers ?? Math.min(os.availableParallelism(), usefulWorkers), partitions)
  if (count < 2) return
  const controller = new AbortController()
  const running = Array.from({ length: count }, (_, index) =>
    runWorker(projection, { share: `${index}/${count}`, signal: controller.signal }),
  )
  try {
    await Promise.all(running)
  } finally {
    controller.abort()
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
  const closed = once(child, 'close')
  const stderr = await text(child.stderr)
  const [code, signalName] = await closed
  signal.removeEventListener('abort', kill)
  if (code === 0) return
  throw new Error(
    stderr.trim().split('\n').at(-1) || `a rebuild worker exited with ${signalName ?? code}`,
  )
}

/** Exits when the parent process exits, which closes standard input. */
export function exitWithParent(): void {
  process.stdin.resume().once('close', () => process.exit(1))
  process.stdin.unref()
}
