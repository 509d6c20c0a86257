import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
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

  const outputOf = (output: string) => path.join(folder, output)
  const exported = (what: string, output: string, ...flags: string[]) =>
    cluster.operate<Row>('export', what, '--output', outputOf(output), '--format', 'jsonl', ...flags)

  async function linesIn(output: string): Promise<Row[]> {
    const files = (await readdir(outputOf(output))).filter((file) => file.endsWith('.jsonl')).sort()
    const texts = await Promise.all(files.map((file) => readFile(path.join(outputOf(output), file), 'utf8')))
    return linesOf(texts.join(''))
  }

  async function printed(...flags: string[]): Promise<Row[]> {
    const { code, stdout } = await cluster.cli(['events', '--topic', topic, ...flags])
    expect(code).toBe(0)
    return linesOf(stdout)
  }

  it.each([[[]], [['--open']]])('events are those that are printed, with %j', async (flags) => {
    const output = `events${flags.join('')}`
    const before = await printed(...flags)
    await exported('events', output, '--topic', topic, ...flags)
    const found = (await linesIn(output)).map(({ partition, offset, sealed, type, data }) => ({
      ...{ type, position: { topic, partition, offset }, data },
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

  it('who was erased is not in a file that is made anew, and is closed in events', async () => {
    const [gone] = visits
    if (!gone) throw new Error('nobody came')
    const { owner, baseUrls } = cluster
    const visitor = await visitorOf({ baseUrl: baseUrls[0] ?? '', owner }, gone)
    const headers = { authorization: `Bearer ${owner.secret.key}` }
    const at = `/v1/organizations/${owner.organizationId}/visitors/${visitor}`
    expect((await cluster.fetch(0, at, { method: 'DELETE', headers })).status).toBe(200)
    expect(await exported('sessions', 'opened', '--open')).toMatchObject({ rows: 3, parts_made: 0 })
    await rm(path.join(outputOf('opened'), 'sessions-000001.jsonl'))
    expect(await exported('sessions', 'opened', '--open')).toMatchObject({ rows: 2, parts_made: 1 })
    expect((await linesIn('opened')).map((row) => row.session_id)).not.toContain(gone.sessionId)
    await exported('events', 'erased', '--topic', topic, '--open', '--type', 'SessionScored')
    for (const { key, sealed } of await linesIn('erased'))
      expect(sealed).toBe(key === gone.sessionId ? 'erased' : null)
  })

  it('another export, and other files, are refused in the folder', async () => {
    const refusal = async (...args: string[]) => (await cluster.cli(['export', 'sessions', ...args])).stderr
    expect(await refusal('--output', outputOf('closed'), '--since', '7d')).toContain(
      'has another export: it differs in format, since.',
    )
    await exported('sessions', 'empty', '--until', '2020-01-01T00:00:00Z')
    expect(await linesIn('empty')).toEqual([])
    await writeFile(path.join(folder, 'notes'), '')
    expect(await refusal('--output', folder)).toContain('has other files')
  })
})

const linesOf = (text: string): Row[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
