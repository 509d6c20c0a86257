import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fillSessions } from '../../bench/history/rows.ts'
import { migrate } from '../../infra/event-store/builds.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { eventTopics } from '../../schemas/events.ts'
import { jsonLines, startCli } from '../support/cli.ts'
import {
  type Cluster,
  clusterLogs,
  createInstallation,
  type Installation,
  startCluster,
} from '../support/cluster.ts'
import { type Visit, visitAs, visitorOf } from '../support/devices.ts'
import { duckDb } from '../support/duckdb.ts'
import { needs } from '../support/needs.ts'
import { pastEvents } from '../support/past-events.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

type Row = Record<string, unknown>

const topic = eventTopics.SessionScored
const withDuckDb = needs('python-duckdb')

/** Starts the command, and returns it once it has written rows. */
async function startExport({ settings }: Installation, args: string[], file: string) {
  const partOf = () => stat(`${file}.part`).catch(() => undefined)
  // A file that an earlier export left would be taken for its own.
  const before = (await partOf())?.ctimeMs
  const child = startCli(args, settings)
  for (;;) {
    const part = await partOf()
    if (part && part.ctimeMs !== before && part.size > 1000) return child
    expect(child.exitCode).toBeNull()
    await sleep(5)
  }
}

async function killExport(installation: Installation, args: string[], file: string) {
  const child = await startExport(installation, args, file)
  child.kill('SIGKILL')
  await child.result
  expect([existsSync(file), existsSync(`${file}.part`)]).toEqual([false, true])
}

withDuckDb.describe('an export of many sessions', () => {
  // A million takes five minutes, which only EXPORT_ROWS=1000000 asks for.
  const rows = Number(process.env.EXPORT_ROWS ?? 250_000)
  const endsAt = Date.parse('2026-11-26T00:00:00Z')
  const folder = temporaryFolder('export')
  let installation: Installation

  beforeAll(async () => {
    installation = await createInstallation({ isEmpty: true, env: { LOG_LEVEL: 'warn' } })
    const { pool } = installation
    expect(await installation.cli(['migrate'])).toMatchObject({ code: 0 })
    await migrate(pool, [sessionsProjection])
    // All but those of keys: an export of everything reads none, and to fill them takes longer than the rest.
    const { rows: indexes } = await pool.query<{ name: string }>(
      `select indexrelid::regclass::text as name from pg_index
       where indrelid = 'sessions_b1.sessions'::regclass and not indisprimary`,
    )
    for (const { name } of indexes) await pool.query(`drop index ${name}`)
    await fillSessions(pool, { rows, endsAt })
  }, 1_200_000)
  afterAll(() => installation?.stop())

  /** Erases the last session, and decides the one before it again. */
  async function change(): Promise<void> {
    await installation.pool.query(
      `delete from sessions_b1.sessions where session_id = (select max(session_id) from read.sessions)`,
    )
    await installation.pool.query(
      `update sessions_b1.sessions set evaluated_at = $1, risk_score = 77
       where session_id = (select max(session_id) from read.sessions)`,
      [endsAt + 86_400_000],
    )
  }

  async function summary(): Promise<unknown> {
    const found = await installation.pool.query({
      text: `select count(*)::float8, count(distinct session_id)::float8, sum(risk_score)::float8, sum(asn)::float8,
        sum(evaluated_at)::float8, sum(cardinality(signals))::float8, count(handed_off_at)::float8 from read.sessions`,
      rowMode: 'array',
    })
    return found.rows
  }

  it('that was killed has each session as it was at one moment when it is run again', async () => {
    const file = path.join(folder, 'all.parquet')
    const exporting = ['export', 'sessions', '--out', file, '--json']
    await killExport(installation, exporting, file)
    await change()
    const expected = await summary()
    const running = await startExport(installation, exporting, file)
    await change()
    const ended = await running.result
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(ended.stdout).data).toMatchObject({ file, rows: rows - 1 })
    expect(await readdir(folder)).toEqual(['all.parquet'])
    const exported = await duckDb(
      `select count(*), count(distinct session_id), sum(risk_score)::double, sum(asn)::double,
        sum(epoch_ms(evaluated_at))::double, sum(len(signals))::double, count(handed_off_at) from '${file}'`,
    )
    expect(exported).toEqual(expected)
    expect(await summary()).not.toEqual(expected)
  }, 1_200_000)
})

withDuckDb.describe.each(clusterLogs())('an export of events on %s', (log) => {
  const folder = temporaryFolder('export')
  const owner = { organizationId: `org_${'1'.padStart(26, '0')}` }
  const appended = { count: 0, risk: 0, types: new Map<string, number>() }
  let installation: Installation
  let written = 0

  beforeAll(async () => {
    installation = await createInstallation({ log, isEmpty: true, env: { LOG_LEVEL: 'error' } })
    expect(await installation.cli(['migrate'])).toMatchObject({ code: 0 })
    while (written < 10_000) await append(500)
  }, 600_000)
  afterAll(() => installation?.stop())

  async function append(count: number): Promise<void> {
    const events = pastEvents(owner, { from: written, count, start: Date.UTC(2024, 0, 1) })
    written += count
    await installation.append(events)
    for (const { type, data } of events) {
      appended.count += 1
      appended.risk += 'risk_score' in data ? data.risk_score : 0
      appended.types.set(type, (appended.types.get(type) ?? 0) + 1)
    }
  }

  it('that was killed has each once when it is run again', async () => {
    const file = path.join(folder, 'events.parquet')
    const exporting = ['export', 'events', '--topic', topic, '--out', file]
    for (let kills = 0; kills < 2; kills++) {
      await killExport(installation, exporting, file)
      await append(20)
    }
    const { count, risk, types } = appended
    const whole = { file, format: 'parquet', rows: count }
    expect(await installation.operate(...exporting)).toMatchObject(whole)
    expect(await readdir(folder)).toEqual(['events.parquet'])
    expect(
      await duckDb(
        `select count(*), count(distinct (partition, "offset")), count(distinct event_id),
          sum(coalesce(json_extract(data, '$.risk_score')::double, 0)) from '${file}'`,
      ),
    ).toEqual([[count, count, count, risk]])
    expect(await duckDb(`select type, count(*) from '${file}' group by 1 order by 1`)).toEqual(
      [...types].toSorted(),
    )
    const holes = `having min("offset") <> 0 or max("offset") <> count(*) - 1`
    expect(await duckDb(`select partition from '${file}' group by 1 ${holes}`)).toEqual([])
  }, 600_000)
})

// Real visits, so that what is encrypted is.
describe('exports of people', () => {
  const folder = temporaryFolder('export')
  const visits: Visit[] = []
  let cluster: Cluster

  beforeAll(async () => {
    cluster = await startCluster()
    for (const device of [0, 1, 2]) visits.push(await visitAs(cluster, device))
    for (const visit of visits) await visitorOf(cluster, visit)
  }, 240_000)
  afterAll(() => cluster?.stop())

  const fileOf = (name: string) => path.join(folder, `${name}.jsonl`)

  async function exported(what: string, name: string, ...flags: string[]): Promise<Row[]> {
    await cluster.operate('export', what, '--out', fileOf(name), ...flags)
    return jsonLines<Row>(await readFile(fileOf(name), 'utf8'))
  }

  async function printed(...flags: string[]): Promise<Row[]> {
    const { code, stdout } = await cluster.cli(['events', '--topic', topic, ...flags])
    expect(code).toBe(0)
    return jsonLines<Row>(stdout)
  }

  it.each([[[]], [['--open']]])('events are those that are printed, with %j', async (flags) => {
    const before = await printed(...flags)
    const rows = await exported('events', `events${flags.join('')}`, '--topic', topic, ...flags)
    const found = rows.map(({ partition, offset, sealed, type, data }) => ({
      type,
      position: { topic, partition, offset },
      data,
      ...(sealed === null ? {} : { sealed }),
    }))
    const events = (await printed(...flags)).map(({ meta: _meta, ...event }) => event)
    expect(found.length).toBeGreaterThanOrEqual(before.length)
    expect(events).toEqual(expect.arrayContaining(found))
    expect(new Set(found.map(({ position }) => JSON.stringify(position))).size).toBe(found.length)
    expect(found.filter(({ type }) => type === 'SessionScored').length).toBeGreaterThanOrEqual(3)
    expect(found.some(({ sealed }) => sealed === 'closed')).toBe(flags.length === 0)
  })

  it('sessions have what their organization keeps back only where it is opened', async () => {
    const ids = visits.map(({ sessionId }) => sessionId).sort()
    const rowsOf = (facts: object) => ids.map((session_id) => ({ session_id, ...facts }))
    const hidden = { ip_address: null, user_agent: null }
    expect(await exported('sessions', 'closed')).toMatchObject(rowsOf(hidden))
    const shown = { ip_address: '127.0.0.1', user_agent: expect.stringMatching(/./) }
    expect(await exported('sessions', 'opened', '--open')).toMatchObject(rowsOf(shown))
  })

  it('who was erased is not in a later file, and is closed in events', async () => {
    const [gone] = visits
    if (!gone) throw new Error('nobody came')
    const visitor = await visitorOf(cluster, gone)
    const { organizationId } = cluster.owner
    const erased = `/v1/organizations/${organizationId}/visitors/${visitor}`
    await cluster.read(erased, { method: 'DELETE' })
    const later = await exported('sessions', 'later', '--open')
    expect(later.map(({ session_id }) => session_id)).toEqual(
      visits
        .slice(1)
        .map(({ sessionId }) => sessionId)
        .sort(),
    )
    const flags = ['--topic', topic, '--open', '--type', 'SessionScored']
    for (const { key, sealed } of await exported('events', 'erased', ...flags))
      expect(sealed).toBe(key === gone.sessionId ? 'erased' : null)
  })
})
