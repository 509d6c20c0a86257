import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import { type CliResult, cli, startCli } from '../support/cli.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { codeBlock } from '../support/code-block.ts'
import { eventually } from '../support/eventually.ts'
import { startTraffic } from '../support/session-traffic.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const verdicts = 'docs/examples/views/verdicts-by-page.ts'
const sessions = 30

// By a role that has the rights of the page and no others.
describe('tidegate project', () => {
  const role = `views_${randomBytes(4).toString('hex')}`
  const password = randomBytes(12).toString('hex')
  let cluster: Cluster
  let settings: Record<string, string>
  const folder = temporaryFolder('views')

  beforeAll(async () => {
    cluster = await startCluster()
    const sql = await codeBlock('guide/own-views.md', 'own-views.sql')
    await cluster.pool.query(sql.replaceAll(/\bviews\b/g, role))
    await cluster.pool.query(`alter role ${role} password '${password}'`)
    const url = new URL(cluster.settings.DATABASE_URL ?? '')
    url.username = role
    url.password = password
    settings = { ...cluster.settings, DATABASE_URL: url.href }
    const traffic = startTraffic({
      baseUrl: () => cluster.baseUrl,
      publishableKey: cluster.owner.publishable.key,
      seed: 'views',
      sessions,
      atOnce: 4,
    })
    await traffic.done
    expect(traffic.givenUp).toEqual([])
  }, 240_000)
  afterAll(async () => {
    await cluster?.pool.query(`drop owned by ${role} cascade; drop role ${role}`)
    await cluster?.stop()
  })

  // The role that fills the view stands for the readers too.
  const grantsOf = async (reports: string): Promise<string> =>
    (await codeBlock('guide/own-views.md', 'grants.sql')).replaceAll(/\breports\b/g, reports)

  const project = (...args: string[]): Promise<CliResult> => cli(['project', ...args], settings)

  async function ofView(): Promise<string[]> {
    const { rows } = await cluster.pool.query<{ line: string }>(
      `select concat_ws(' ', day, page_host, verdict, sessions) as line from view_verdicts_by_page.verdicts_a_day`,
    )
    return rows.map(({ line }) => line).sort()
  }

  async function ofApi(): Promise<string[]> {
    const query = 'group_by=page_host,verdict&interval=day&top=100'
    const { groups } = await cluster.read<{
      groups: { start: string; values: Record<string, string>; sessions: number }[]
    }>(`/v1/sessions/aggregates?${query}`)
    return groups
      .map(({ start, values, sessions: n }) =>
        [start.slice(0, 10), values.page_host, values.verdict, n].join(' '),
      )
      .sort()
  }

  it('counts as the API does, after a kill in the middle as well', async () => {
    const killed = startCli(['project', verdicts], settings)
    await eventually(async () => expect((await ofView()).length).toBeGreaterThan(0), {
      timeoutMs: 90_000,
    })
    killed.kill('SIGKILL')
    await killed.result
    const { code, stderr } = await project(verdicts, '--once')
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('up to date'),
    })
    expect((await ofView()).length).toBeGreaterThan(0)
    expect(await ofView()).toEqual(await ofApi())
  }, 240_000)

  it('reads again for a new version, and the template and the funnel of Gate run as they are', async () => {
    const file = path.join(folder, 'my-view.ts')
    expect(await project(file, '--new')).toMatchObject({ code: 0 })
    expect(await project(file, '--once')).toMatchObject({ code: 0 })
    const counted = 'select sum(count)::integer as n from view_my_view.verdicts'
    expect((await cluster.pool.query(counted)).rows).toEqual([{ n: sessions }])
    await writeFile(file, (await readFile(file, 'utf8')).replace('version: 1', 'version: 2'))
    const second = await project(file, '--once')
    const line = 'Dropped version 1 of view_my_view. Reading the log again for version 2.'
    expect(second).toMatchObject({ code: 0, stderr: expect.stringContaining(line) })
    expect((await cluster.pool.query(counted)).rows).toEqual([{ n: sessions }])
    await cluster.pool.query(await grantsOf(role))
    expect(await project('docs/examples/views/gate-funnel.ts', '--once')).toMatchObject({ code: 0 })
  }, 240_000)

  it('by a role that may read and write nothing else', async () => {
    const pool = createPool({ url: settings.DATABASE_URL ?? '' })
    const others = [
      'select from read.session_facts',
      'select from read.sessions',
      'delete from read.sessions',
      `insert into tidegate.bound_log (identity) values ('x')`,
      'create table tidegate.mine (id text)',
      'delete from tidegate_keys.session_keys',
      'select from tidegate.projection_offsets',
    ]
    for (const sql of others)
      await expect(pool.query(sql), sql).rejects.toMatchObject({ code: '42501' })
    await pool.end()
  })

  it('a handler that throws ends the command alone, and the record is named', async () => {
    const file = path.join(folder, 'throws.ts')
    await writeFile(
      file,
      `export default { name: 'throws', version: 1, events: ['SessionScored'],
        tables: { rows: { columns: { id: 'text' }, key: ['id'] } },
        handle({ data }) { throw new Error(JSON.stringify(data)) } }`,
    )
    const { code, stderr, stdout } = await project(file, '--once')
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /tidegate\.sessions\.v1\/\d+ offset \d+: the handler threw Error at line 3, event evt_/,
    )
    expect(stderr + stdout).not.toMatch(/Mozilla|risk_score/)
  }, 120_000)
})
