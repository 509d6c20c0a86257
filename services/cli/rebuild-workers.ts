import { spawn } from 'node:child_process'
import { once } from 'node:events'
import os from 'node:os'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { type LoaderOptions, startLoader } from '../../infra/event-store/loader.ts'
import type { BesideWork } from '../../infra/event-store/rebuild.ts'

/** A process starts as fast as another loads so many records. */
const recordsPerWorker = 10_000

/**
 * Loads the build in processes of the same program, each with the partitions of its share. The first that fails ends the
 * others, and its message is thrown. One alone is none: the caller loads as fast.
 */
export async function loadInWorkers(
  projection: string,
  work: BesideWork,
  workers: number | undefined,
): Promise<void> {
  const records = work.target.reduce((sum, { offset }) => sum + offset, 0)
  const partitions = new Set(work.target.map(({ partition }) => partition)).size
  const worthwhile = Math.ceil(records / recordsPerWorker)
  const count = Math.min(workers ?? Math.min(os.availableParallelism(), worthwhile), partitions)
  if (count < 2) return
  const ending = new AbortController()
  const running = Array.from({ length: count }, (_, index) =>
    runWorker(projection, work, { share: `${index}/${count}`, signal: ending.signal }),
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
  work: BesideWork,
  { share, signal }: { share: string; signal: AbortSignal },
): Promise<void> {
  const [program = ''] = process.argv.slice(1)
  const args = [...process.execArgv, program, 'rebuild', projection, '--share', share]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'pipe'] })
  const kill = () => child.kill('SIGKILL')
  signal.addEventListener('abort', kill, { once: true })
  const ended = once(child, 'close')
  child.stdin.on('error', () => {})
  child.stdin.write(`${JSON.stringify(work)}\n`)
  const said = await text(child.stderr)
  const [code, by] = await ended
  signal.removeEventListener('abort', kill)
  if (code === 0) return
  throw new Error(
    said.trim().split('\n').at(-1) || `a process of the rebuild ended with ${by ?? code}`,
  )
}

const buildShape = z.object({
  projection: z.string(),
  build: z.number(),
  version: z.number(),
  status: z.enum(['building', 'live', 'retired']),
  schema: z.string(),
  home: z.string(),
})
const workShape = z.object({
  live: buildShape,
  next: buildShape,
  target: z.array(z.object({ topic: z.string(), partition: z.number(), offset: z.number() })),
})

type Loading = Omit<LoaderOptions, 'build' | 'live' | 'share'>

/** Loads a share of a build, `index/of`, as the process says that started this one; ends the process when that one ends. */
export async function loadShare(loading: Loading, share = '0/1'): Promise<void> {
  const [index = 0, of = 1] = share.split('/').map(Number)
  const input = createInterface({ input: process.stdin })
  const [line] = await once(input, 'line')
  input.once('close', () => process.exit(1))
  const { live, next, target } = workShape.parse(JSON.parse(String(line)))
  const loader = await startLoader({ ...loading, build: next, live, share: { index, of } })
  try {
    await loader.waitFor(target)
  } finally {
    await loader.stop()
    input.removeAllListeners('close')
    process.stdin.destroy()
  }
}
