import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../infra/config.ts'
import { createCodec } from '../../infra/event-store/codec.ts'
import { asId, timeOrderedId } from '../../infra/ids.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { openLog } from '../../services/server/dependencies.ts'
import { type ClusterOptions, clusterLogs, kafkaPlace, type Owner, operator } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { deleteTopics } from '../support/logs.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { rebuildIsEqual } from '../support/roles.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { metaOf, sessionScored, visitorLink } from '../support/session-scored.ts'

const day = 24 * 60 * 60 * 1000
const patient = { timeoutMs: 90_000, intervalMs: 500 }

interface Group {
  kind: 'value' | 'other' | 'ended'
  values: Record<string, string | null>
  sessions: number
}

interface Counts {
  sessions: number
  ended: number
  visitors: number | null
  groups: Group[]
}

interface Listed {
  id: string
  visitor_fingerprint: { id: string } | null
  latest_decision: { verdict: string; evaluated_at: string }
}

const fields = [
  ...['verdict', 'signal', 'attribution', 'country', 'asn', 'network'],
  ...['page_host', 'key_id', 'browser', 'os', 'handed_off', 'mark'],
]

// What somebody finds who goes through the whole list is what the counts say, by each value of each field.
describe.each(clusterLogs())('counts of recorded sessions, on %s', (name: ClusterOptions['log']) => {
  let database: TestDatabase
  let settings: Record<string, string>
  let server: ServerProcess
  let owner: Owner
  const visitors = Array.from({ length: 12 }, () => timeOrderedId('vid', Date.now() - 9 * day, randomBytes))

  beforeAll(async () => {
    const kafka = name === 'kafka' ? await kafkaPlace() : { brokers: '', prefix: '' }
    database = await createTestDatabase({ empty: true })
    settings = {
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: kafka.brokers,
      KAFKA_TOPIC_PREFIX: kafka.prefix,
      DATABASE_URL: database.url,
    }
    server = await startServerProcess(['serve'], settings)
    owner = await operator(settings).organization()
  }, 60_000)
  afterAll(async () => {
    await server?.end('SIGTERM')
    if (name === 'kafka')
      await deleteTopics((settings.KAFKA_BROKERS ?? '').split(','), settings.KAFKA_TOPIC_PREFIX ?? '')
    await database?.drop()
  })

  async function send<T>(path: string, { method = 'GET', body }: { method?: string; body?: object } = {}) {
    const headers = { authorization: `Bearer ${owner.secret.key}`, 'content-type': 'application/json' }
    const sent = body ? { method, headers, body: JSON.stringify(body) } : { method, headers }
    const answer = await fetch(`${server.baseUrl}/v1${path}`, sent)
    expect([200, 201], `${path} ${answer.status}`).toContain(answer.status)
    const { data, pagination }: { data: T; pagination?: { next_cursor?: string } } = JSON.parse(
      await answer.text(),
    )
    return { data, pagination }
  }

  /** The whole list, page by page. */
  async function list(query = ''): Promise<Listed[]> {
    const found: Listed[] = []
    for (let cursor = ''; ; ) {
      const page = await send<Listed[]>(`/sessions?limit=97${cursor && `&cursor=${cursor}`}${query}`)
      found.push(...page.data)
      if (!page.pagination?.next_cursor) return found
      cursor = page.pagination.next_cursor
    }
  }

  const count = async (query: string) => (await send<Counts>(`/sessions/aggregates?top=100${query}`)).data

  /** `ended`: how many sessions are left of which the decisions have ended. */
  async function countsAreThoseOfTheList(ended = 0): Promise<void> {
    const all = await list()
    expect(await count('')).toMatchObject({ sessions: all.length, ended: 0 })
    for (const field of fields) {
      const counted = await count(`&group_by=${field}`)
      const lasts = ['verdict', 'key_id', 'mark'].includes(field)
      expect(counted, field).toMatchObject({
        sessions: all.length - (lasts ? 0 : ended),
        ended: lasts ? 0 : ended,
      })
      const named = counted.groups.filter(({ kind, values }) => kind === 'value' && values[field] !== null)
      for (const { values, sessions } of named) {
        const query = `&${field}=${encodeURIComponent(values[field] ?? '')}`
        expect((await list(query)).length, query).toBe(sessions)
      }
      if (ended === 0) expect(named.length, field).toBeGreaterThan(1)
    }
    const bots = all.filter(({ latest_decision }) => latest_decision.verdict === 'bot')
    expect(
      (await count('&verdict=bot&group_by=browser')).groups.reduce((n, one) => n + one.sessions, 0),
    ).toBe(bots.length)
    const since = new Date(Date.now() - 6 * day).toISOString()
    const newer = all.filter(({ latest_decision }) => latest_decision.evaluated_at >= since)
    expect(await count(`&since=${since}`)).toMatchObject({
      sessions: newer.length,
      visitors: new Set(newer.flatMap(({ visitor_fingerprint: visitor }) => visitor?.id ?? [])).size,
    })
  }

  // Decisions of the last eight days, as servers wrote them: some sessions were decided again an hour later.
  async function write(sessions: number): Promise<void> {
    const logger = createLogger('silent')
    const log = await openLog({
      config: readConfig(settings),
      pool: database.pool,
      url: database.url,
      logger,
    })
    const codec = createCodec()
    const records = Array.from({ length: sessions }, (_, n) => decisionsOf(n)).flat()
    await log.append(records.map((data) => codec.toRecord({ type: 'SessionScored', data }, metaOf(data))))
    await log.close()
  }

  function decisionsOf(n: number) {
    const at = Date.now() - 8 * day + n * 1_700_000
    const session_id = timeOrderedId('sid', at, randomBytes)
    const times = n % 3 === 0 ? [at, at + 3_600_000] : [at]
    return times.map((evaluated_at, place) => decision({ n: n + place * 7, session_id, evaluated_at }))
  }

  function decision({
    n,
    session_id,
    evaluated_at,
  }: {
    n: number
    session_id: string
    evaluated_at: number
  }) {
    const of = <T>(values: readonly [T, ...T[]]): T => values[n % values.length] ?? values[0]
    const base = sessionScored()
    const signal = (slug: string) => ({ ...base.signals_fired[0], signal: slug })
    return sessionScored({
      ...{ session_id, evaluated_at, created_at: evaluated_at, is_provisional: false },
      event_id: timeOrderedId('evt', evaluated_at, randomBytes),
      organization_id: asId('org', owner.organizationId),
      key_id: of([owner.publishable.id, timeOrderedId('key', 1, () => Buffer.alloc(10))]),
      visitor: visitorLink({ id: visitors[n % visitors.length] ?? '', continuity_id: `kept ${n % 12}` }),
      verdict: of(['bot', 'human', 'inconclusive', 'human']),
      hand_off: n % 5 === 0 ? { challenge_answered: true, input_observed: true, binding: null } : null,
      signals_fired: [signal('lone_click'), signal(of(['bare_machine', 'engine_mismatch']))].map((one) => ({
        ...{ role: 'risk', category: 'environment', strength: 'weak', channel: 'machine', signal_score: 5 },
        ...one,
      })),
      attribution: {
        labels: [{ kind: 'tool', value: of(['playwright', 'selenium']), label: 'x', confidence: 90 }],
        behaviors: [],
      },
      request: {
        ...{ referrer: null, user_agent: 'x', ip_address: '203.0.113.9', screen_size: null },
        is_touch_capable: null,
        url: of(['https://shop.example/a', 'https://www.shop.example/b?c', 'https://bücher.example/']),
      },
      network: {
        ...base.network,
        status: 'ready',
        location: {
          ...{ city: null, region: null, country: null, latitude: null, longitude: null, timezone: null },
          ...{ postal_code: null, accuracy_radius_km: null, country_code: of(['DE', 'FR', 'US', 'DE']) },
        },
        routing: { asn: of(['AS64500', 'AS64501']), organization: 'Example' },
        anonymity: { ...base.network.anonymity, hosting: n % 4 === 0 },
      },
      browser: { ...base.browser, name: of(['Chrome', 'Firefox', 'Safari']) },
      device: { ...base.device, operating_system: { name: of(['Windows', 'macOS', 'Linux']), version: '1' } },
    })
  }

  it('are those of the list, hour by hour as they are rolled up', async () => {
    await write(400)
    await eventually(async () => expect(await list()).toHaveLength(400), patient)
    await mark('bot', 9)
    await mark('human', 40)
    await countsAreThoseOfTheList()
    // A server looks for such hours at its start, and then once an hour.
    await server.end('SIGTERM')
    server = await startServerProcess(['serve'], settings)
    const rolled = 'select count(*)::int as n from read.session_hours where sessions is not null'
    await eventually(async () => {
      expect((await database.pool.query<{ n: number }>(rolled)).rows[0]?.n).toBeGreaterThan(100)
    }, patient)
    await countsAreThoseOfTheList()
  }, 300_000)

  async function mark(label: string, sessions: number): Promise<string> {
    const session_ids = (await list()).slice(0, sessions).map(({ id }) => id)
    const { data } = await send<{ id: string }>('/marks', { method: 'POST', body: { label, session_ids } })
    return data.id
  }

  it('follow marks that come and go, and the erasure of a visitor', async () => {
    const id = await mark('fraud', 20)
    expect((await list('&mark=fraud')).length).toBe(20)
    await send(`/marks/${id}`, { method: 'DELETE' })
    await countsAreThoseOfTheList()
    const before = (await list()).length
    const [visitorId] = visitors
    await send(`/organizations/${owner.organizationId}/visitors/${visitorId}`, { method: 'DELETE' })
    expect((await list()).length).toBeLessThan(before)
    await countsAreThoseOfTheList()
  }, 300_000)

  it('have what has ended by itself, and are the same after a rebuild', async () => {
    await server.end('SIGTERM')
    Object.assign(settings, { DECISION_RETENTION_DAYS: '2', SESSION_RETENTION_DAYS: '4' })
    server = await startServerProcess(['serve'], settings)
    const today = Date.now() - (Date.now() % day)
    const at = ({ latest_decision }: Listed) => Date.parse(latest_decision.evaluated_at)
    await eventually(
      async () => expect((await list()).every((one) => at(one) >= today - 4 * day)).toBe(true),
      patient,
    )
    const ended = (await list()).filter((one) => at(one) < today - 2 * day).length
    expect(ended).toBeGreaterThan(0)
    await eventually(async () => expect((await count('&group_by=country')).ended).toBe(ended), patient)
    await countsAreThoseOfTheList(ended)
    await rebuildIsEqual(settings, 'sessions')
    await countsAreThoseOfTheList(ended)
  }, 300_000)
})
