import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect } from 'vitest'
import { cli } from '../support/cli.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { codeBlock } from '../support/code-block.ts'
import {
  createOwnDatabase,
  type DebianPostgres,
  startDebianPostgres,
} from '../support/debian-postgres.ts'
import { visitAs } from '../support/devices.ts'
import { approveOverHttp, askGate, requestSignup } from '../support/gate-approve.ts'
import { needs } from '../support/needs.ts'
import { queryAt } from '../support/server-databases.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const { describe, it } = needs('postgresql', 'shells')

const run = promisify(execFile)
const block = (label: string) => codeBlock('operate/backup.md', `${label}: sh`)

describe('the database is dumped and restored as the docs say', () => {
  const folder = temporaryFolder('dump')
  let postgres: DebianPostgres
  let cluster: Cluster
  let url = ''

  beforeAll(async () => {
    postgres = await startDebianPostgres()
    url = await createOwnDatabase(postgres)
    cluster = await startCluster({ database: { url, drop: async () => {} } })
    for (const device of [1, 2, 3]) await visitAs(cluster, device)
  }, 120_000)

  afterAll(async () => {
    await cluster?.stop()
    await postgres?.stop()
  })

  let shell = 'bash'
  const sh = (script: string, env: Record<string, string>) =>
    run(shell, ['-euo', 'pipefail', '-c', script], { cwd: folder, env: { ...process.env, ...env } })

  async function newDatabase(name: string): Promise<string> {
    await queryAt(postgres.url, [`create database ${name} owner tidegate`])
    return url.replace('/tidegate?', `/${name}?`)
  }

  /** Without the lines that have a random token. */
  async function schemaOf(of: string): Promise<string> {
    const { stdout } = await sh('pg_dump --schema-only "$DATABASE_URL"', { DATABASE_URL: of })
    return stdout.replace(/^\\(?:un)?restrict .*$/gm, '')
  }

  async function rowsOf(of: string): Promise<Record<string, number>> {
    const tables = await queryAt<{ name: string }>(of, [
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
    ])
    const counts: Record<string, number> = {}
    for (const { name } of tables) {
      const [row] = await queryAt<{ n: number }>(of, [`select count(*)::int as n from ${name}`])
      counts[name] = row?.n ?? 0
    }
    return counts
  }

  const everything = () =>
    Promise.all(
      [
        '/v1/sessions?limit=100',
        '/v1/fingerprints?limit=100',
        `/v1/organizations/${cluster.owner.organizationId}`,
      ].map((one) => cluster.read(one)),
    )

  /** Polls a new signup whose credentials wait. */
  async function approvedSignup() {
    const { id, pollToken: token } = await requestSignup(cluster.baseUrl)
    const approval = { gateSessionId: id, account_name: 'Robin' }
    const { status } = await approveOverHttp({ baseUrl: cluster.baseUrl, ...approval })
    expect(status).toBe(200)
    return () => askGate(cluster.baseUrl, `sessions/${id}`, { token })
  }

  const inVault = (of: string) => queryAt(of, ['select gate_session_id from tidegate.gate_vault'])

  it('every table and row is there but those of the vault, and servers go on with it', async () => {
    const before = await everything()
    const poll = await approvedSignup()
    expect(await poll()).toMatchObject({ status: 200, data: { status: 'approved' } })
    expect(await inVault(url)).toHaveLength(1)
    await cluster.end()
    await sh(await block('dump'), { DATABASE_URL: url })
    const restored = await newDatabase('restored')
    await sh(await block('dump-restore'), { DATABASE_URL: restored })

    expect(await schemaOf(restored)).toBe(await schemaOf(url))
    expect(await rowsOf(restored)).toEqual({ ...(await rowsOf(url)), 'tidegate.gate_vault': 0 })
    cluster.settings.DATABASE_URL = restored
    await cluster.replace()
    expect(await cluster.readiness()).toBe('200 ok')
    expect(await everything()).toEqual(before)
    expect(await poll()).toMatchObject({ status: 410, code: 'gate.delivery_consumed' })
    await visitAs(cluster, 4)
  }, 120_000)

  it('a dump without the table is repaired by the table of an empty database', async () => {
    shell = 'zsh'
    const whole = (await block('dump')).replace('--exclude-table-data=', '--exclude-table=')
    expect(whole).toContain('--exclude-table=tidegate.gate_vault')
    await sh(whole, { DATABASE_URL: url })
    const restored = await newDatabase('repaired')
    await sh(await block('dump-restore'), { DATABASE_URL: restored })
    await expect(inVault(restored)).rejects.toThrow('does not exist')

    const empty = await newDatabase('empty')
    expect(await cli(['migrate'], { ...cluster.settings, DATABASE_URL: empty })).toMatchObject({
      code: 0,
    })
    await sh(await block('vault'), { DATABASE_URL: restored, EMPTY_DATABASE_URL: empty })
    expect(await inVault(restored)).toEqual([])
    expect(await schemaOf(restored)).toBe(await schemaOf(url))
  }, 120_000)
})
