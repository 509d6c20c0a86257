import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../infra/config.ts'
import { createCodec } from '../../infra/event-store/codec.ts'
import { timeOrderedId } from '../../infra/ids.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { openLog } from '../../services/server/dependencies.ts'
import { type Owner, operator } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import {
  type CountedField,
  countedFields,
  createHistory,
  decidedAt,
  type Group,
  type History,
  type HistoryEvent,
  type Listed,
  merge,
  namedGroups,
  split,
} from '../support/history.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { rebuildIsEqual } from '../support/roles.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'

const day = 24 * 60 * 60 * 1000
const patient = { timeoutMs: 90_000, intervalMs: 500 }

interface Counts {
  sessions: number
  ended: number
  visitors: number | null
  groups: Group[]
}

// What somebody finds who goes through the whole list, and knows the events, is what the counts say.
describe('counts of recorded sessions', () => {
  let database: TestDatabase
  let settings: Record<string, string>
  let server: ServerProcess
  let owner: Owner
  let history: History
  // Decisions from before it have ended.
  let endedBefore = 0

  beforeAll(async () => {
    database = await createTestDatabase({ empty: true })
    settings = {
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: '',
      DATABASE_URL: database.url,
      RATE_LIMIT_SECRET: '100000',
    }
    server = await startServerProcess(['serve'], settings)
    owner = await operator(settings).organization()
    const keyIds: [string, string] = [
      owner.publishable.id,
      timeOrderedId('key', 1, () => Buffer.alloc(10)),
    ]
    history = createHistory({ organizationId: owner.organizationId, keyIds })
  }, 120_000)
  afterAll(async () => {
    await server?.end('SIGTERM')
    await database?.drop()
  })

  async function send<T>(
    path: string,
    { method = 'GET', body }: { method?: string; body?: object } = {},
  ) {
    const headers = {
      authorization: `Bearer ${owner.secret.key}`,
      'content-type': 'application/json',
    }
    const sent = body ? { method, headers, body: JSON.stringify(body) } : { method, headers }
    const answer = await fetch(`${server.baseUrl}/v1${path}`, sent)
    expect([200, 201], `${path} ${answer.status}`).toContain(answer.status)
    const { data, pagination }: { data: T; pagination?: { next_cursor?: string } } = JSON.parse(
      await answer.text(),
    )
    return { data, pagination }
  }

  /** The whole list, page by page; that of a filter in few, because there are hundreds of them. */
  async function list(query = ''): Promise<Listed[]> {
    const found: Listed[] = []
    const limit = query ? 200 : 97
    for (let cursor = ''; ; ) {
      const page = await send<Listed[]>(
        `/sessions?limit=${limit}${cursor && `&cursor=${cursor}`}${query}`,
      )
      found.push(...page.data)
      if (!page.pagination?.next_cursor) return found
      cursor = page.pagination.next_cursor
    }
  }

  const count = async (query: string) =>
    (await send<Counts>(`/sessions/aggregates?top=100${query}`)).data

  async function countsAreThoseOfTheList(): Promise<void> {
    const all = await list()
    expect(await count('')).toMatchObject({ sessions: all.length, ended: 0 })
    for (const field of countedFields) {
      await groupsAreThoseOf(all, [field], 'none')
      await groupsAreThoseOf(all, [field], 'day')
      if (field !== 'verdict') await groupsAreThoseOf(all, [field, 'verdict'], 'none')
      await filteredAreThoseOfTheList(field)
    }
    await groupsAreThoseOf(all, [], 'hour')
    const since = Date.now() - 6 * day
    const newer = all.filter((one) => decidedAt(one) >= since)
    expect(await count(`&since=${new Date(since).toISOString()}`)).toMatchObject({
      sessions: newer.length,
      visitors: new Set(newer.flatMap(({ visitor_fingerprint: visitor }) => visitor?.id ?? []))
        .size,
    })
  }

  async function groupsAreThoseOf(
    all: Listed[],
    groupBy: CountedField[],
    interval: 'none' | 'hour' | 'day',
  ): Promise<void> {
    const query = `&interval=${interval}${groupBy.length > 0 ? `&group_by=${groupBy.join()}` : ''}`
    const { groups } = await count(query)
    expect(namedGroups(groups, groupBy), query).toEqual(
      history.count(all, { groupBy, interval, endedBefore }),
    )
  }

  async function filteredAreThoseOfTheList(field: CountedField): Promise<void> {
    const { groups } = await count(`&group_by=${field}`)
    for (const { values, sessions } of groups.filter(({ kind }) => kind === 'value')) {
      const query = `&${field}=${encodeURIComponent(values[field] ?? '')}`
      expect((await list(query)).length, query).toBe(sessions)
      expect((await count(query)).sessions, query).toBe(sessions)
    }
    expect(groups.length, field).toBeGreaterThan(1)
  }

  /** As servers write them. */
  async function write(events: HistoryEvent[]): Promise<void> {
    const logger = createLogger('silent')
    const config = readConfig(settings)
    const log = await openLog({ config, pool: database.pool, url: database.url, logger })
    const codec = createCodec()
    const about = {
      time: Date.now(),
      organizationId: owner.organizationId,
      environment: 'live',
    } as const
    const records = events.map((event) =>
      codec.toRecord(event, { ...about, eventId: event.data.event_id }),
    )
    await log.append(records)
    await log.close()
  }

  const decided = (events: ReturnType<History['begin']>) =>
    write(events.map((data) => ({ type: 'SessionScored', data })))

  async function restart(): Promise<void> {
    await server.end('SIGTERM')
    server = await startServerProcess(['serve'], settings)
  }

  // A server looks for such hours at its start, and then once an hour.
  async function hoursAreRolledUp(): Promise<void> {
    await restart()
    const left = `select from read.sessions s where evaluated_at < $1 and not exists (
      select from read.session_hours h where h.sessions is not null and h.organization_id = s.organization_id
        and h.environment = s.environment and h.hour = s.evaluated_at - s.evaluated_at % 3600000) limit 1`
    const over = Date.now() - day / 12
    await eventually(async () => {
      expect((await database.pool.query(left, [over])).rows).toHaveLength(0)
    }, patient)
  }

  async function mark(label: string, sessions: Listed[]): Promise<string> {
    const session_ids = sessions.map(({ id }) => id)
    const { data } = await send<{ id: string }>('/marks', {
      method: 'POST',
      body: { label, session_ids },
    })
    return data.id
  }

  it('are those of the list, as sessions have them and as hours are rolled up', async () => {
    await decided(history.begin(400))
    await eventually(async () => expect(await list()).toHaveLength(400), patient)
    const all = await list()
    await mark('bot', all.slice(0, 9))
    await mark('human', all.slice(9, 40))
    await countsAreThoseOfTheList()
    await hoursAreRolledUp()
    await countsAreThoseOfTheList()
  }, 300_000)

  it('follow sessions that are decided anew and those that become those of another visitor', async () => {
    const { organizationId } = owner
    const all = await list()
    const anew = all.slice(300, 320)
    await decided(history.decideAnew(anew))
    const latest = new Map(anew.map((one) => [one.id, decidedAt(one) + 2 * day]))
    await eventually(async () => {
      const moved = (await list()).filter((one) => latest.get(one.id) === decidedAt(one))
      expect(moved).toHaveLength(anew.length)
    }, patient)
    await countsAreThoseOfTheList()

    const ofVisitor = (some: Listed[], id: string | undefined) =>
      some.filter(({ visitor_fingerprint: visitor }) => visitor?.id === id)
    const { visitors } = history
    const now = await list()
    const parted = history.newVisitor()
    const sessions = ofVisitor(now, visitors[1]).slice(0, 5)
    await write(split({ organizationId, sessions, to: parted }))
    const whole = ofVisitor(now, visitors[2])
    await write(merge({ organizationId, sessions: whole, to: visitors[3] ?? '' }))
    const there = ofVisitor(now, visitors[3]).length
    expect(whole.length).toBeGreaterThan(0)
    await eventually(async () => {
      const after = await list()
      const of = (id: string | undefined) => ofVisitor(after, id).length
      expect([of(parted), of(visitors[2]), of(visitors[3])]).toEqual([5, 0, there + whole.length])
    }, patient)
    await countsAreThoseOfTheList()
    expect((await count(`&visitor_id=${visitors[3]}`)).sessions).toBe(there + whole.length)
  }, 300_000)

  it('follow marks that come and go, and the erasure of a visitor', async () => {
    const id = await mark('fraud', (await list()).slice(0, 20))
    expect((await list('&mark=fraud')).length).toBe(20)
    await countsAreThoseOfTheList()
    await send(`/marks/${id}`, { method: 'DELETE' })
    await countsAreThoseOfTheList()
    const before = (await list()).length
    const [visitorId] = history.visitors
    await send(`/organizations/${owner.organizationId}/visitors/${visitorId}`, { method: 'DELETE' })
    expect((await list()).length).toBeLessThan(before)
    await countsAreThoseOfTheList()
  }, 300_000)

  it('have what has ended by itself, and are the same after a rebuild', async () => {
    const { operate } = operator(settings)
    await hoursAreRolledUp()
    // Decisions end an hour after midnight, so that until then there are none of sessions that stay for two days.
    const sessions = new Date().getUTCHours() === 0 ? '3' : '2'
    await operate('org', 'policy', owner.slug, '--decisions', '1', '--sessions', sessions)
    // What has ended is looked for at the start of a server.
    await restart()
    interface Ended {
      sessions_before: number
      decisions_before: number
    }
    const ended = await eventually(async () => {
      const shown = await operate<{ ended: Partial<Ended> }>('org', 'policy', owner.slug)
      expect(shown.ended).toMatchObject({ sessions_before: expect.any(Number) })
      return shown.ended as Ended
    }, patient)
    endedBefore = ended.decisions_before
    const rows = `select from read.sessions where evaluated_at < $1
      or (evaluated_at < $2 and scoring_version is not null)`
    await eventually(async () => {
      const { sessions_before, decisions_before } = ended
      expect(
        (await database.pool.query(rows, [sessions_before, decisions_before])).rows,
      ).toHaveLength(0)
    }, patient)
    const left = (await list()).filter((one) => decidedAt(one) < endedBefore)
    expect(left.length).toBeGreaterThan(0)
    expect((await list()).every((one) => decidedAt(one) >= ended.sessions_before)).toBe(true)
    expect((await count('&group_by=country')).ended).toBe(left.length)
    await countsAreThoseOfTheList()
    await mark('legitimate', left.slice(0, 3))
    await countsAreThoseOfTheList()
    await rebuildIsEqual(settings, 'sessions')
    await countsAreThoseOfTheList()
    await hoursAreRolledUp()
    await countsAreThoseOfTheList()
  }, 300_000)
})
