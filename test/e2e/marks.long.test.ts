import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { rebuildIsEqual } from '../support/roles.ts'
import { sessionScored, visitorLink } from '../support/session-scored.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

interface Mark {
  id: string
  label: string
  reason: string | null
  session_count: number
}

interface Imported {
  session_count: number
  unchanged_count: number
  marks: Mark[]
}

const count = 1100
const id = (prefix: string, n: number) => `${prefix}_${String(n).padStart(26, '0')}`
const sid = (n: number) => id('sid', n)

describe('marks by files', () => {
  const folder = temporaryFolder('marks')
  let cluster: Cluster

  beforeAll(async () => {
    cluster = await startCluster()
    await score()
  }, 120_000)
  afterAll(() => cluster?.stop())

  async function score(): Promise<void> {
    const { organizationId: organization_id } = cluster.owner
    await cluster.append(
      Array.from({ length: count }, (_, n) => {
        const ids = { organization_id, session_id: sid(n), event_id: id('evt', n) }
        const data = sessionScored({ ...ids, visitor: visitorLink({ id: id('vid', n) }) })
        return { type: 'SessionScored', data }
      }),
    )
    await eventually(
      async () => {
        const { rows } = await cluster.pool.query(
          'select count(*)::integer as n from read.sessions',
        )
        expect(rows).toEqual([{ n: count }])
      },
      { timeoutMs: 60_000, intervalMs: 200 },
    )
  }

  const scope = () => ['--organization', cluster.owner.slug]

  async function importing(lines: string[], ...flags: string[]) {
    const file = path.join(folder, 'marks.csv')
    await writeFile(file, ['session_id,label,reason', ...lines, ''].join('\n'))
    return cluster.cli(['marks', 'import', file, ...scope(), ...flags])
  }

  async function imported(lines: string[]): Promise<Imported> {
    const { code, stdout } = await importing(lines, '--json')
    expect(code).toBe(0)
    return JSON.parse(stdout).data
  }

  async function exported(...flags: string[]): Promise<string[]> {
    const { code, stdout, stderr } = await cluster.cli(['marks', 'export', ...scope(), ...flags])
    expect([code, stderr]).toEqual([0, ''])
    const [head, ...lines] = stdout.trimEnd().split('\n')
    expect(head).toBe('session_id,label,reason,marked_at')
    return lines
  }

  const markOf = async (n: number) =>
    (await cluster.read<{ mark: Mark }>(`/v1/sessions/${sid(n)}`)).mark

  it('a file with faults marks nothing, and is told where they are', async () => {
    const { code, stderr } = await importing([`${sid(1)},bot,x`, `${sid(2)},robot,Not a word`])
    expect(code).toBe(1)
    expect(stderr).toContain('line 3, label must be one of human, bot, fraud, legitimate')
    expect(stderr).toContain('line 3, reason must be 1-64 characters of')
    const unknown = await importing([`${sid(1)},bot,x`, `${sid(count)},bot,x`], '--json')
    expect([unknown.code, JSON.parse(unknown.stdout).error.details.fields[0].name]).toEqual([
      1,
      'line 3, session_id',
    ])
    const elsewhere = await importing([`${sid(1)},bot,x`], '--environment', 'test')
    expect(elsewhere.stderr).toContain('line 2, session_id')
    expect(await exported()).toEqual([])
  }, 60_000)

  it('marks by label and reason, at most 1,000 at once, and again only what differs', async () => {
    const lines = Array.from(
      { length: count },
      (_, n) => `${sid(n)},${n < 20 ? 'human' : 'bot'},${n < 10 ? 'called' : ''}`,
    )
    const first = await imported(lines)
    expect(first).toMatchObject({ session_count: count, unchanged_count: 0 })
    expect(
      first.marks.map(({ label, reason, session_count }) => [label, reason, session_count]),
    ).toEqual([
      ['human', 'called', 10],
      ['human', null, 10],
      ['bot', null, 1000],
      ['bot', null, 80],
    ])
    const second = await imported([...lines.slice(0, -1), `${sid(count - 1)},fraud,`])
    expect(second).toMatchObject({ session_count: 1, unchanged_count: count - 1 })
    const text = await importing(lines.slice(0, 3))
    expect(text.stdout).toBe('Labeled 0 sessions. 3 already had the label.\n')
  }, 60_000)

  it('the API shows them, the audit log who marked, and the export the newest of each', async () => {
    const { id: markId, ...mark } = await markOf(3)
    expect(mark).toEqual({ label: 'human', reason: 'called', marked_at: expect.any(String) })
    const body = { label: 'legitimate', reason: 'vip', session_ids: [sid(3)] }
    const newer = await cluster.read<Mark>('/v1/marks', { body })
    const lines = await exported()
    expect(lines).toHaveLength(count)
    expect(lines[3]).toMatch(new RegExp(`^${sid(3)},legitimate,vip,`))
    expect(lines.at(-1)).toMatch(new RegExp(`^${sid(count - 1)},fraud,,\\d{4}-`))
    expect(await exported('--since', new Date(Date.now() + 60_000).toISOString())).toEqual([])
    const [actors, subjects] = await eventually(async () => {
      type Entry = { type: string; subject_id: string; actor: object }
      const entries = await cluster.operate<Entry[]>('audit', '--limit', '99')
      const marked = entries.filter(({ type }) => type === 'SessionMarked')
      expect(marked).toHaveLength(6)
      return [marked.map(({ actor }) => actor), marked.map(({ subject_id }) => subject_id)]
    })
    expect(actors).toContainEqual({ type: 'operator', id: 'marks import' })
    expect(actors).toContainEqual({ type: 'key', id: cluster.owner.secret.id })
    expect(subjects).toContain(markId)
    await cluster.read(`/v1/marks/${newer.id}`, { method: 'DELETE' })
    expect((await markOf(3)).id).toBe(markId)
    // Counts of the hour, which may have been rolled up before, follow marks.
    const counted = await cluster.read<{ groups: { values: object; sessions: number }[] }>(
      '/v1/sessions/aggregates?group_by=mark&interval=none',
    )
    expect(counted.groups.map(({ values, sessions }) => ({ ...values, sessions }))).toEqual([
      { mark: 'bot', sessions: count - 21 },
      { mark: 'human', sessions: 20 },
      { mark: 'fraud', sessions: 1 },
    ])
  }, 60_000)

  it('an export is an import that changes nothing; a person’s export and erasure have the marks', async () => {
    const file = path.join(folder, 'export.csv')
    await writeFile(file, `session_id,label,reason,marked_at\r\n${(await exported()).join('\r\n')}`)
    const again = await cluster.operate<Imported>('marks', 'import', file, ...scope())
    expect(again).toEqual({ session_count: 0, unchanged_count: count, marks: [] })
    const person = `/v1/organizations/${cluster.owner.organizationId}/visitors/${id('vid', 3)}`
    interface Exported {
      sessions: { marks: { label: string; is_removed: boolean }[] }[]
    }
    const { sessions } = await cluster.read<Exported>(`${person}/export`)
    expect(sessions[0]?.marks).toMatchObject([
      { label: 'human', is_removed: false },
      { label: 'legitimate', is_removed: true },
    ])
    const { counts } = await cluster.read<{ counts: object }>(person, { method: 'DELETE' })
    expect(counts).toMatchObject({ sessions: 1, session_marks: 2 })
    expect(await exported()).toHaveLength(count - 1)
    for (const projection of ['sessions', 'audit'])
      await rebuildIsEqual(cluster.settings, projection)
  }, 120_000)
})
