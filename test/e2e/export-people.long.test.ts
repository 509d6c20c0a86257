import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { type Visit, visitAs, visitorOf } from '../support/devices.ts'

type Row = Record<string, unknown>

const topic = 'tidegate.sessions.v1'

// Real visits, so that what is encrypted is.
describe('exports of people', () => {
  let cluster: Cluster
  let folder: string
  const visits: Visit[] = []

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tidegate-export-'))
    cluster = await startCluster({ log: 'postgres', processes: 1 })
    const { owner, baseUrls } = cluster
    const reader = { baseUrl: baseUrls[0] ?? '', owner }
    for (const device of [0, 1, 2]) visits.push(await visitAs(device, reader))
    for (const visit of visits) await visitorOf(reader, visit)
  }, 240_000)
  afterAll(async () => {
    await cluster?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const fileOf = (name: string) => path.join(folder, `${name}.jsonl`)
  const exported = (what: string, name: string, ...flags: string[]) =>
    cluster.operate<Row>('export', what, '--out', fileOf(name), ...flags)

  const linesIn = async (name: string): Promise<Row[]> =>
    linesOf(await readFile(fileOf(name), 'utf8'))

  async function printed(...flags: string[]): Promise<Row[]> {
    const { code, stdout } = await cluster.cli(['events', '--topic', topic, ...flags])
    expect(code).toBe(0)
    return linesOf(stdout)
  }

  it.each([[[]], [['--open']]])('events are those that are printed, with %j', async (flags) => {
    const name = `events${flags.join('')}`
    const before = await printed(...flags)
    await exported('events', name, '--topic', topic, ...flags)
    const found = (await linesIn(name)).map(({ partition, offset, sealed, type, data }) => ({
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
    await exported('sessions', 'closed')
    await exported('sessions', 'opened', '--open')
    const [closed, opened] = [await linesIn('closed'), await linesIn('opened')]
    const ids = visits.map(({ sessionId }) => sessionId).sort()
    expect(closed.map((row) => row.session_id)).toEqual(ids)
    expect(opened.map((row) => row.session_id)).toEqual(ids)
    for (const row of closed) expect(row).toMatchObject({ ip_address: null, user_agent: null })
    for (const row of opened)
      expect(row).toMatchObject({
        ip_address: '127.0.0.1',
        user_agent: expect.stringMatching(/./),
      })
  })

  it('who was erased is not in a later file, and is closed in events', async () => {
    const [gone] = visits
    if (!gone) throw new Error('nobody came')
    const { owner, baseUrls } = cluster
    const visitor = await visitorOf({ baseUrl: baseUrls[0] ?? '', owner }, gone)
    const headers = { authorization: `Bearer ${owner.secret.key}` }
    const at = `/v1/organizations/${owner.organizationId}/visitors/${visitor}`
    expect((await cluster.fetch(0, at, { method: 'DELETE', headers })).status).toBe(200)
    expect(await exported('sessions', 'later', '--open')).toMatchObject({ rows: 2 })
    expect((await linesIn('later')).map((row) => row.session_id)).not.toContain(gone.sessionId)
    await exported('events', 'erased', '--topic', topic, '--open', '--type', 'SessionScored')
    for (const { key, sealed } of await linesIn('erased'))
      expect(sealed).toBe(key === gone.sessionId ? 'erased' : null)
  })

  it('never overwrites, and names what is wrong with --out', async () => {
    const refusal = async (...args: string[]) => {
      const { code, stderr } = await cluster.cli(['export', 'sessions', ...args])
      expect(code).toBe(1)
      return stderr
    }
    await exported('sessions', 'empty', '--until', '2020-01-01T00:00:00Z')
    expect(await linesIn('empty')).toEqual([])
    expect(await refusal('--out', fileOf('empty'))).toBe(
      `--out: ${fileOf('empty')} exists already. Delete it, or name a new file.\n`,
    )
    expect(await refusal('--out', 'sessions.txt')).toBe(
      '--out must end in one of .parquet, .jsonl, .csv, or --format must be set, got "sessions.txt"\n',
    )
    expect(await refusal('--out', path.join(folder, 'none', 'rows.csv'))).toContain(
      'no such file or directory',
    )
    const { code } = await cluster.cli([
      'export',
      'sessions',
      '--out',
      path.join(folder, 'rows'),
      '--format',
      'csv',
    ])
    expect(code).toBe(0)
    expect(await readFile(path.join(folder, 'rows'), 'utf8')).toMatch(
      /^session_id,organization_id,/,
    )
  })
})

const linesOf = (text: string): Row[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
