import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, expect } from 'vitest'
import { generateDeliveryKeys } from '../../infra/wire/delivery-envelope.ts'
import { cli } from '../support/cli.ts'
import { type Owner, operator } from '../support/cluster.ts'
import { codeBlock } from '../support/code-block.ts'
import {
  createOwnDatabase,
  type DebianPostgres,
  startDebianPostgres,
} from '../support/debian-postgres.ts'
import { readAs, visitAs } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { consentProof } from '../support/gate-proof.ts'
import { needs } from '../support/needs.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'

const { describe, it } = needs('postgresql', 'shells')

const run = promisify(execFile)
const block = (label: string) => codeBlock('operate/operations.md', `${label}: sh`)

describe('the database is dumped and restored as the docs say', () => {
  let folder = ''
  let postgres: DebianPostgres
  let server: ServerProcess
  let owner: Owner
  let settings: Record<string, string>
  let url = ''

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-dump-'))
    postgres = await startDebianPostgres()
    url = await createOwnDatabase(postgres)
    settings = { TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'), KAFKA_BROKERS: '' }
    server = await startServerProcess(['serve'], { ...settings, DATABASE_URL: url })
    owner = await operator({ ...settings, DATABASE_URL: url }).organization()
    for (const device of [1, 2, 3]) await visitAs(device, { baseUrl: server.baseUrl, owner })
  }, 120_000)

  afterAll(async () => {
    await server?.end('SIGTERM')
    await postgres?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  let shell = 'bash'
  const sh = (script: string, env: Record<string, string>) =>
    run(shell, ['-euo', 'pipefail', '-c', script], { cwd: folder, env: { ...process.env, ...env } })

  async function query<Row extends object>(of: string, text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: of })
    await client.connect()
    try {
      return (await client.query<Row>(text)).rows
    } finally {
      await client.end()
    }
  }

  async function newDatabase(name: string): Promise<string> {
    await query(postgres.url, `create database ${name} owner tidegate`)
    return url.replace('/tidegate?', `/${name}?`)
  }

  /** Without the lines that have a random token. */
  async function schemaOf(of: string): Promise<string> {
    const { stdout } = await sh('pg_dump --schema-only "$DATABASE_URL"', { DATABASE_URL: of })
    return stdout.replace(/^\\(?:un)?restrict .*$/gm, '')
  }

  async function rowsOf(of: string): Promise<Record<string, number>> {
    const tables = await query<{ name: string }>(
      of,
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
    )
    const counts: Record<string, number> = {}
    for (const { name } of tables) {
      const [row] = await query<{ n: number }>(of, `select count(*)::int as n from ${name}`)
      counts[name] = row?.n ?? 0
    }
    return counts
  }

  const everything = async () =>
    Promise.all(
      [
        '/v1/sessions?limit=100',
        '/v1/fingerprints?limit=100',
        `/v1/organizations/${owner.organizationId}`,
      ].map((one) => readAs({ baseUrl: server.baseUrl, owner }, one)),
    )

  async function ask(place: string, { token, body }: { token?: string; body?: object }) {
    const response = await fetch(`${server.baseUrl}/v1/gate/sessions${place}`, {
      method: body ? 'POST' : 'GET',
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const { data, error } = JSON.parse(await response.text())
    return { status: response.status, data, code: error?.code }
  }

  /** Polls a new signup whose credentials wait. */
  async function approvedSignup() {
    const { delivery } = generateDeliveryKeys()
    const account_name = 'Robin'
    const opened = await ask('', { body: { service_id: 'tidegate', account_name, delivery } })
    const { id, poll_token: token } = opened.data
    const { approve_token } = (await ask(`/${id}/consent`, {})).data
    const { sealedToken: sealed_token } = await consentProof({
      baseUrl: server.baseUrl,
      gateSessionId: id,
      approveToken: approve_token,
    })
    const body = { approve_token, sealed_token, account_name }
    await eventually(async () => expect((await ask(`/${id}/approve`, { body })).status).toBe(200))
    return () => ask(`/${id}`, { token })
  }

  const inVault = (of: string) => query(of, 'select gate_session_id from tidegate.gate_vault')

  it('every table and row is there but those of the vault, and servers go on with it', async () => {
    const before = await everything()
    const poll = await approvedSignup()
    expect(await poll()).toMatchObject({ status: 200, data: { status: 'approved' } })
    expect(await inVault(url)).toHaveLength(1)
    await server.end('SIGTERM')
    await sh(await block('dump'), { DATABASE_URL: url })
    const restored = await newDatabase('restored')
    await sh(await block('dump-restore'), { DATABASE_URL: restored })

    expect(await schemaOf(restored)).toBe(await schemaOf(url))
    expect(await rowsOf(restored)).toEqual({ ...(await rowsOf(url)), 'tidegate.gate_vault': 0 })
    server = await startServerProcess(['serve'], { ...settings, DATABASE_URL: restored })
    expect((await fetch(`${server.baseUrl}/readyz`)).status).toBe(200)
    expect(await everything()).toEqual(before)
    expect(await poll()).toMatchObject({ status: 410, code: 'gate.delivery_consumed' })
    await visitAs(4, { baseUrl: server.baseUrl, owner })
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
    expect(await cli(['migrate'], { ...settings, DATABASE_URL: empty })).toMatchObject({ code: 0 })
    await sh(await block('vault'), { DATABASE_URL: restored, EMPTY_DATABASE_URL: empty })
    expect(await inVault(restored)).toEqual([])
    expect(await schemaOf(restored)).toBe(await schemaOf(url))
  }, 120_000)
})
