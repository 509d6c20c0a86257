import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { type RebuildPhases, rebuild } from '../../infra/event-store/rebuild.ts'
import { transaction } from '../../infra/postgres/pool.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import type { Core } from '../../services/server/dependencies.ts'
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import { openOwnCore } from '../own-core.ts'
import { treeCpuMicros } from '../procfs.ts'
import { interleave, type Turns } from '../rounds.ts'
import { pairedRatio, spreadOf } from '../stats.ts'

/** Rebuilding the sessions read model from the log against COPY of its rows into the same tables and indexes. */
export async function measureRebuild(environment: Environment, turns: Turns): Promise<Measurement> {
  const core = await openOwnCore(environment)
  // COPY needs a connection without pipelining.
  const pool = new pg.Pool({ connectionString: environment.databaseUrl, max: 1 })
  try {
    const rows = await copyOut(pool)
    const samples = await interleave(turns, [
      { name: 'rebuild', run: () => measured(environment, () => rebuildSessions(core)) },
      { name: 'copy', run: () => measured(environment, () => copyIn(pool, rows)) },
    ])
    const [rebuilds, copies] = [samples.rebuild ?? [], samples.copy ?? []]
    const median = (of: (sample: Sample) => number, some = rebuilds) =>
      spreadOf(some.map(of)).median
    return {
      name: 'rebuild of the sessions read model against COPY of the same rows',
      log: environment.logName,
      unit: 'ratio',
      value: pairedRatio(
        copies.map(({ seconds }) => seconds),
        rebuilds.map(({ seconds }) => seconds),
      ),
      aim: { direction: 'at least', value: 0.5 },
      details: {
        'rebuild s': median(({ seconds }) => seconds),
        'loading s': median(({ phases }) => phases?.load ?? 0),
        'indexes s': median(({ phases }) => phases?.index ?? 0),
        'comparing s': median(({ phases }) => phases?.compare ?? 0),
        'rebuild node s of processor': median(({ nodeSeconds }) => nodeSeconds),
        'rebuild stores s of processor': median(({ storeSeconds }) => storeSeconds),
        'copy s': median(({ seconds }) => seconds, copies),
        'copy stores s of processor': median(({ storeSeconds }) => storeSeconds, copies),
        ...(await rowCounts(core.pool)),
      },
    }
  } finally {
    await pool.end()
    await core.close()
  }
}

interface Sample {
  seconds: number
  /** Of the processor: this process, and Postgres with the log. */
  nodeSeconds: number
  storeSeconds: number
  phases: RebuildPhases | undefined
}

async function measured(
  { storePids }: Environment,
  work: () => Promise<RebuildPhases | undefined>,
): Promise<Sample> {
  const stores = () => storePids.reduce((sum, pid) => sum + treeCpuMicros(pid), 0)
  const [node, store, start] = [process.cpuUsage(), stores(), performance.now()]
  const phases = await work()
  const { user, system } = process.cpuUsage(node)
  return {
    seconds: (performance.now() - start) / 1000,
    nodeSeconds: (user + system) / 1e6,
    storeSeconds: (stores() - store) / 1e6,
    phases,
  }
}

async function rebuildSessions({ log, pool, codec, logger, skips }: Core): Promise<RebuildPhases> {
  const { equal, phases } = await rebuild({
    projection: sessionsProjection,
    log,
    pool,
    codec,
    logger,
    skips,
  })
  if (!equal) throw new Error('the rebuilt tables differ from the live ones')
  return phases
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

/** Loads the rows, then makes the readers' indexes: what a rebuild leaves behind, without reading a log. */
async function copyIn(pool: pg.Pool, tables: TableRows): Promise<undefined> {
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
