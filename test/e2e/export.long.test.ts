import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fillSessions } from '../../bench/history/rows.ts'
import { migrate } from '../../infra/event-store/builds.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { cli } from '../support/cli.ts'
import { duckDb } from '../support/duckdb.ts'
import { killExport, startExport } from '../support/exports.ts'
import { needs } from '../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

// A million takes five minutes, which only EXPORT_ROWS=1000000 asks for.
const rows = Number(process.env.EXPORT_ROWS ?? 250_000)
const endsAt = Date.parse('2026-11-26T00:00:00Z')

let database: TestDatabase
let folder: string
let settings: Record<string, string>

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-export-'))
  database = await createTestDatabase({ empty: true })
  settings = { DATABASE_URL: database.url, KAFKA_BROKERS: '', LOG_LEVEL: 'warn' }
  expect(
    await cli(['migrate'], {
      ...settings,
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
    }),
  ).toMatchObject({ code: 0 })
  await migrate(database.pool, [sessionsProjection])
  await dropIndexes()
  await fillSessions(database.pool, { rows, endsAt })
}, 1_200_000)
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
  await database?.drop()
})

/** All but those of keys: an export of everything reads none, and to fill them takes longer than the rest. */
async function dropIndexes(): Promise<void> {
  const { rows: indexes } = await database.pool.query<{ name: string }>(
    `select indexrelid::regclass::text as name from pg_index
     where indrelid = 'sessions_b1.sessions'::regclass and not indisprimary`,
  )
  for (const { name } of indexes) await database.pool.query(`drop index ${name}`)
}

/** Erases the last session, and decides the one before it again. */
async function change(): Promise<void> {
  const { rows: ends } = await database.pool.query<{ session_id: string }>(
    'select session_id from read.sessions order by session_id desc limit 2',
  )
  const [last, second] = ends
  if (!last || !second) throw new Error('no sessions')
  await database.pool.query('delete from sessions_b1.sessions where session_id = $1', [
    last.session_id,
  ])
  await database.pool.query(
    'update sessions_b1.sessions set evaluated_at = $2, risk_score = 77 where session_id = $1',
    [second.session_id, endsAt + 86_400_000],
  )
}

async function summary(): Promise<unknown> {
  const {
    rows: [sums],
  } = await database.pool.query({
    text: `select count(*)::float8, count(distinct session_id)::float8, sum(risk_score)::float8, sum(asn)::float8,
      sum(evaluated_at)::float8, sum(cardinality(signals))::float8, count(handed_off_at)::float8 from read.sessions`,
    rowMode: 'array',
  })
  return sums
}

async function summaryOf(file: string): Promise<unknown> {
  const [sums] = await duckDb(
    `select count(*), count(distinct session_id), sum(risk_score)::double, sum(asn)::double,
      sum(epoch_ms(evaluated_at))::double, sum(len(signals))::double, count(handed_off_at) from '${file}'`,
  )
  return sums
}

needs('python-duckdb').describe('an export of many sessions', () => {
  it('that was killed has each session as it was at one moment when it is run again', async () => {
    const file = path.join(folder, 'all.parquet')
    const exporting = ['export', 'sessions', '--out', file, '--json']
    await killExport(exporting, { settings, file })
    await change()
    const expected = await summary()
    const running = await startExport(exporting, { settings, file })
    await change()
    const ended = await running.result
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(ended.stdout).data).toMatchObject({ file, rows: rows - 1 })
    expect(await readdir(folder)).toEqual(['all.parquet'])
    expect(await summaryOf(file)).toEqual(expected)
    expect(await summary()).not.toEqual(expected)
  }, 1_200_000)
})
