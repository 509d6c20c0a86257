import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fillSessions } from '../../bench/history/rows.ts'
import { migrate } from '../../infra/event-store/builds.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { cli } from '../support/cli.ts'
import { duckDb } from '../support/duckdb.ts'
import { killExport, unfinishedIn } from '../support/exports.ts'
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
    await cli(['migrate'], { ...settings, TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64') }),
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

const outputOf = (name: string) => path.join(folder, name)
const exporting = (name: string) => ['export', 'sessions', '--output', outputOf(name), '--json']

/**
 * The last session is erased, and the one before it and the first are decided again, long after the export began. The
 * first one as it was, which a part has that is made already.
 */
async function changed(): Promise<{ session_id: string; risk_score: number }> {
  const { rows: ends } = await database.pool.query<{ session_id: string; risk_score: number }>(
    `(select session_id, risk_score from read.sessions order by session_id limit 1)
     union all (select session_id, risk_score from read.sessions order by session_id desc limit 2)`,
  )
  const [first, last, second] = ends
  if (!first || !last || !second) throw new Error('no sessions')
  await database.pool.query('delete from sessions_b1.sessions where session_id = $1', [last.session_id])
  await database.pool.query(
    'update sessions_b1.sessions set evaluated_at = $2, risk_score = 77 where session_id = any($1)',
    [[first.session_id, second.session_id], Date.now() + 86_400_000],
  )
  return first
}

needs('python-duckdb').describe('an export of many sessions', () => {
  it('that is killed three times has each session once', async () => {
    for (const parts of [1, 1, 1])
      expect(await killExport(exporting('all'), { settings, folder: outputOf('all'), parts })).toMatchObject({
        state: 'unfinished',
      })
    const before = await changed()
    const ended = await cli(exporting('all'), settings)
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(ended.stdout).data).toMatchObject({
      state: 'whole',
      rows: rows - 1,
      parts: Math.ceil(rows / 50_000),
    })
    const { rows: expected } = await database.pool.query({
      text: `select count(*)::float8, count(distinct session_id)::float8, sum(risk_score)::float8, sum(asn)::float8,
        sum(evaluated_at)::float8, sum(cardinality(signals))::float8, count(handed_off_at)::float8
        from read.sessions where session_id <> $1`,
      values: [before.session_id],
      rowMode: 'array',
    })
    const files = `'${outputOf('all')}/*.parquet'`
    const found = await duckDb(
      `select count(*), count(distinct session_id), sum(risk_score)::double, sum(asn)::double,
        sum(epoch_ms(evaluated_at))::double, sum(len(signals))::double, count(handed_off_at)
       from ${files} where session_id <> '${before.session_id}'`,
    )
    expect(found).toEqual(expected)
    const early = await duckDb(`select risk_score from ${files} where session_id = '${before.session_id}'`)
    expect(early).toEqual([[before.risk_score]])
    const late = await duckDb(`select risk_score from ${files} where evaluated_at > now()::timestamp`)
    expect(late).toEqual([[77]])
    expect(await unfinishedIn(outputOf('all'))).toEqual([])
  }, 1_200_000)
})
