import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { rebuild } from '../../infra/event-store/rebuild.ts'
import { transaction } from '../../infra/postgres/pool.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import type { Core } from '../../services/server/dependencies.ts'
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import { openOwnCore } from '../own-core.ts'
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
      { name: 'rebuild', run: () => seconds(() => rebuildSessions(core)) },
      { name: 'copy', run: () => seconds(() => copyIn(pool, rows)) },
    ])
    const { rebuild: rebuilds = [], copy: copies = [] } = samples
    return {
      name: 'rebuild of the sessions read model against COPY of the same rows',
      log: environment.logName,
      unit: 'ratio',
      value: pairedRatio(copies, rebuilds),
      aim: { direction: 'at least', value: 0.5 },
      details: {
        'rebuild s': spreadOf(rebuilds).median,
        'copy s': spreadOf(copies).median,
        ...(await rowCounts(core.pool)),
      },
    }
  } finally {
    await pool.end()
    await core.close()
  }
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1000
}

async function rebuildSessions({ log, pool, codec, logger, skips }: Core): Promise<void> {
  const { equal } = await rebuild({ projection: sessionsProjection, log, pool, codec, logger, skips })
  if (!equal) throw new Error('the rebuilt tables differ from the live ones')
}

type TableRows = { table: string; rows: Buffer }[]

async function copyOut(pool: pg.Pool): Promise<TableRows> {
  const client = await pool.connect()
  try {
    const tables: TableRows = []
    for (const table of sessionsProjection.tables) {
      const stream = client.query(copyTo(`copy (select * from read.${table}) to stdout (format binary)`))
      tables.push({ table, rows: await buffer(stream) })
    }
    return tables
  } finally {
    client.release()
  }
}

/** Loads the rows, then makes the readers' indexes: what a rebuild leaves behind, without reading a log. */
async function copyIn(pool: pg.Pool, tables: TableRows): Promise<void> {
  await pool.query('drop schema if exists bench_copy cascade; create schema bench_copy')
  await transaction(pool, async (tx) => {
    await tx.query(`set local search_path = bench_copy, public, tidegate; ${sessionsProjection.ddl}`)
    for (const { table, rows } of tables) {
      await pipeline(Readable.from([rows]), tx.query(copyFrom(`copy ${table} from stdin (format binary)`)))
    }
    await tx.query(sessionsProjection.indexes)
  })
}

async function rowCounts(pool: pg.Pool): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const table of sessionsProjection.tables) {
    const { rows } = await pool.query<{ count: number }>(`select count(*)::int as count from read.${table}`)
    counts[table] = rows[0]?.count ?? 0
  }
  return counts
}
