import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fillSessions } from '../../bench/history/rows.ts'
import { migrate } from '../../infra/event-store/builds.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { cli, startCli } from '../support/cli.ts'
import { duckDb } from '../support/duckdb.ts'
import { needs } from '../support/needs.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

const rows = 1_000_000
const endsAt = Date.parse('2026-11-26T00:00:00Z')

interface Manifest {
  state: string
  rows: number
  parts: { file: string; from: number; to: number; rows: number | null }[]
}

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
  await fillSessions(database.pool, { rows, endsAt })
}, 600_000)
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
  await database?.drop()
})

const outputOf = (name: string) => path.join(folder, name)
const manifestOf = async (name: string): Promise<Manifest> =>
  JSON.parse(await readFile(path.join(outputOf(name), 'manifest.json'), 'utf8'))
const madeIn = ({ parts }: Manifest) => parts.filter((part) => part.rows !== null)

const exporting = (name: string, ...flags: string[]) => [
  ...['export', 'sessions', '--output', outputOf(name), '--json', ...flags],
]

/** Kills the command once it has made so many parts more, wherever it then is. */
async function killedAfter(name: string, parts: number, ...flags: string[]): Promise<Manifest> {
  const before = madeIn(await manifestOf(name).catch(() => ({ state: '', rows: 0, parts: [] }))).length
  const child = startCli(exporting(name, ...flags), settings)
  for (let made = before; made < before + parts; await sleep(20)) {
    expect(child.exitCode).toBeNull()
    made = madeIn(await manifestOf(name).catch(() => ({ state: '', rows: 0, parts: [] }))).length
  }
  child.kill('SIGKILL')
  await child.result
  return manifestOf(name)
}

needs('python-duckdb').describe('an export of a million sessions', () => {
  it('that is killed three times has each session once', async () => {
    for (const parts of [1, 3, 4]) expect((await killedAfter('all', parts)).state).toBe('unfinished')
    const ended = await cli(exporting('all'), settings)
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(ended.stdout).data).toMatchObject({ state: 'whole', rows, parts: 20 })
    const { rows: expected } = await database.pool.query({
      text: `select count(*)::float8, count(distinct session_id)::float8, sum(risk_score)::float8, sum(asn)::float8,
        sum(evaluated_at)::float8, sum(cardinality(signals))::float8, count(handed_off_at)::float8 from read.sessions`,
      rowMode: 'array',
    })
    const found = await duckDb(
      `select count(*), count(distinct session_id), sum(risk_score)::double, sum(asn)::double,
        sum(epoch_ms(evaluated_at))::double, sum(len(signals))::double, count(handed_off_at)
       from '${outputOf('all')}/*.parquet'`,
    )
    expect(found).toEqual(expected)
    expect((await readdir(outputOf('all'))).filter((name) => name.endsWith('.part'))).toEqual([])
  }, 600_000)
})
