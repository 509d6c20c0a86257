import { execFile } from 'node:child_process'
import path from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import type { RebuildPhases, RebuildReport } from '../../infra/event-store/rebuild.ts'
import { transaction } from '../../infra/postgres/pool.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import { treeCpuMicros } from '../procfs.ts'
import { interleave, type Turns } from '../rounds.ts'
import { pairedRatio, spreadOf } from '../stats.ts'

const workerCounts = [1, 2, 4] as const

/**
 * Measures a rebuild of the sessions read model in one, two and four processes against COPY of its rows into the same
 * tables and indexes. The main value is for two processes.
 */
export async function measureRebuild(environment: Environment, turns: Turns): Promise<Measurement> {
  // COPY needs a connection without pipelining.
  const pool = new pg.Pool({ connectionString: environment.databaseUrl, max: 1 })
  try {
    const rows = await copyOut(pool)
    const samples = await interleave(turns, [
      ...workerCounts.map((workers) => ({
        name: `rebuild ${workers}`,
        run: () => measured(environment, () => rebuildSessions(environment, workers)),
      })),
      { name: 'copy', run: () => measured(environment, () => copyIn(pool, rows)) },
    ])
    const copies = samples.copy ?? []
    const rebuilds = (workers: number) => samples[`rebuild ${workers}`] ?? []
    const median = (of: (sample: Sample) => number, some = rebuilds(2)) =>
      spreadOf(some.map(of)).median
    const against = (workers: number) =>
      pairedRatio(
        copies.map(({ seconds }) => seconds),
        rebuilds(workers).map(({ seconds }) => seconds),
      )
    return {
      name: 'rebuild of the sessions read model against COPY of the same rows',
      log: environment.logName,
      unit: 'ratio',
      value: against(2),
      aim: { direction: 'at least', value: 0.5 },
      details: {
        'with one process': against(1).median,
        'with four': against(4).median,
        'rebuild s': median(({ seconds }) => seconds),
        'loading s': median(({ phases }) => phases?.load ?? 0),
        'indexes s': median(({ phases }) => phases?.index ?? 0),
        'comparing s': median(({ phases }) => phases?.compare ?? 0),
        'rebuild stores s of processor': median(({ storeSeconds }) => storeSeconds),
        'copy s': median(({ seconds }) => seconds, copies),
        'copy stores s of processor': median(({ storeSeconds }) => storeSeconds, copies),
        ...(await rowCounts(pool)),
      },
    }
  } finally {
    await pool.end()
  }
}

interface Sample {
  seconds: number
  /** CPU time of Postgres, including the log. */
  storeSeconds: number
  phases: RebuildPhases | undefined
}

interface Work {
  seconds: number
  phases?: RebuildPhases
}

async function measured({ storePids }: Environment, work: () => Promise<Work>): Promise<Sample> {
  const stores = () => storePids.reduce((sum, pid) => sum + treeCpuMicros(pid), 0)
  const store = stores()
  const { seconds, phases } = await work()
  return { seconds, phases, storeSeconds: (stores() - store) / 1e6 }
}

const run = promisify(execFile)

// Runs the command, because its worker processes load the rows. The seconds exclude its start.
async function rebuildSessions(environment: Environment, workers: number): Promise<Work> {
  const main = path.resolve(import.meta.dirname, '../../services/cli/main.ts')
  const args = [main, 'rebuild', 'sessions', '--json', '--workers', String(workers)]
  const env = { ...process.env, ...environment.settings }
  const { stdout } = await run(process.execPath, args, { env })
  const { equal, seconds, phases }: RebuildReport = JSON.parse(stdout)
  if (!equal) throw new Error('the rebuilt tables differ from the live ones')
  return { seconds, phases }
}

type TableRows = { table: string; rows: Buffer }[]

async function copyOut(pool: pg.Pool): Promise<TableRows> {
  const client = await pool.connect()
  try {
    const tables: TableRows = []
    for (const table of sessionsProjection.tables) {
      const stream = client.query(
        copyTo(`copy (select * from read.${table}) to stdout (format binary)`),
      )
      tables.push({ table, rows: await buffer(stream) })
    }
    return tables
  } finally {
    client.release()
  }
}

/** Loads the rows and creates the read indexes, like a rebuild without reading a log. */
async function copyIn(pool: pg.Pool, tables: TableRows): Promise<Work> {
  const started = performance.now()
  await pool.query('drop schema if exists bench_copy cascade; create schema bench_copy')
  await transaction(pool, async (tx) => {
    await tx.query(
      `set local search_path = bench_copy, public, tidegate; ${sessionsProjection.ddl}`,
    )
    for (const { table, rows } of tables) {
      await pipeline(
        Readable.from([rows]),
        tx.query(copyFrom(`copy ${table} from stdin (format binary)`)),
      )
    }
    await tx.query(sessionsProjection.indexes)
  })
  return { seconds: (performance.now() - started) / 1000 }
}

async function rowCounts(pool: pg.Pool): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const table of sessionsProjection.tables) {
    const { rows } = await pool.query<{ count: number }>(
      `select count(*)::int as count from read.${table}`,
    )
    counts[table] = rows[0]?.count ?? 0
  }
  return counts
}
