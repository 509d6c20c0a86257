import fc from 'fast-check'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { listEvents } from '../../../projections/webhooks/queries.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import { changeOrganization } from '../../../services/organizations/commands.ts'
import { decideOrganizationUpdate } from '../../../services/organizations/decide-organization.ts'
import {
  type AlertCheckOptions,
  checkAlerts,
} from '../../../services/readback/views/alert-checks.ts'
import { alertValue, decideCheck } from '../../../services/readback/views/alert-decide.ts'
import { type AlertState, findDueAlerts } from '../../../services/readback/views/alert-store.ts'
import { purgeViewsOfDeleted } from '../../../services/readback/views/store.ts'
import { runDispatcher } from '../../../services/webhooks/dispatch/dispatcher.ts'
import { createWebhookMeter } from '../../../services/webhooks/metrics.ts'
import { createRaise } from '../../../services/webhooks/raise.ts'
import { type ApiOrganization, startApi } from '../../support/api.ts'
import { eventually } from '../../support/eventually.ts'
import type { Send } from '../../support/send.ts'
import { sessionScored } from '../../support/session-scored.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'
import { fastWebhooks } from '../../support/webhook-world.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

let acme: ApiOrganization
const api = await startApi({ roles: ['api'], env: fastWebhooks })
beforeEach(async () => {
  acme = await api.organization()
})
// A check works on the alerts of all organizations.
afterEach(() => api.pool.query('delete from tidegate.alerts'))
afterAll(() => api.stop())

const send = async (
  method: NonNullable<Send['method']>,
  path: string,
  body?: object,
  key = acme.key,
) => api.send({ method, url: `${acme.path}${path}`, key, body })

const savedView = async (query: string): Promise<string> =>
  (await send('POST', '/views', { name: api.newId('evt'), query })).body.data.id

const settings = { kind: 'count', threshold: 60, window_minutes: 60 }
async function alertOn(query: string, overrides: object = {}): Promise<string> {
  const view_id = await savedView(query)
  const { status, body } = await send('POST', '/alerts', { view_id, ...settings, ...overrides })
  expect([status, body]).toMatchObject([201, { data: { object: 'alert', status: 'quiet' } }])
  return body.data.id
}

const alertWith = async (id: string) =>
  (await send('GET', '/alerts')).body.data.find((alert: { id: string }) => alert.id === id)

const subscribe = (url = 'https://receiver.example/') =>
  send('POST', '/webhooks/endpoints', {
    name: 'Alerts',
    url,
    event_types: ['alert.opened', 'alert.closed'],
  })

async function raisedEvents() {
  await api.caughtUp()
  const { organizationId, environment } = acme
  const query = { organizationId, environment, since: 0, limit: 20 }
  return (await listEvents(api.pool, query)).toReversed()
}

/** Writes decisions at these times, and resolves once they can be read. */
async function score(times: number[], overrides: Partial<SessionScored> = {}): Promise<void> {
  const { organizationId, environment } = acme
  const events = times.map((evaluated_at) => {
    const ids = { session_id: api.newId('sid'), event_id: api.newId('evt') }
    const data = sessionScored({
      organization_id: organizationId,
      environment,
      evaluated_at,
      ...ids,
      ...overrides,
    })
    return { type: 'SessionScored', data } as const
  })
  await api.write({ organizationId, environment }, ...events)
  await api.caughtUp()
}

const bots = { verdict: 'bot' } as const
const options = (overrides: Partial<AlertCheckOptions> = {}): AlertCheckOptions => ({
  ...api.core,
  raise: createRaise(api.core),
  ...overrides,
})
async function check(overrides?: Partial<AlertCheckOptions>): Promise<void> {
  await checkAlerts(options(overrides))
  await api.caughtUp()
}
async function checkAfterMinutes(minutes: number, overrides?: Partial<AlertCheckOptions>) {
  for (let minute = 0; minute < minutes; minute++) {
    api.now.ms += minuteMs
    await check(overrides)
  }
}
/** Returns a logger that adds warnings and errors to the list. */
function recording(logged: unknown[]) {
  const log = (details: unknown, message?: string) => void logged.push({ details, message })
  return Object.assign(pino({ enabled: false }), { warn: log, error: log })
}
const recent = (count: number) => Array.from({ length: count }, (_, i) => api.now.ms - i * 1000)

describe('the API', () => {
  test('creates, lists, changes and deletes an alert, with an event for each change', async () => {
    const view_id = await savedView('verdict=bot')
    const act = async () => {
      const created = await send('POST', '/alerts', { view_id, kind: 'share', threshold: 12.5 })
      const alert = {
        object: 'alert',
        view_id,
        kind: 'share',
        threshold: 12.5,
        window_minutes: 60,
        status: 'quiet',
        opened_at: null,
        closed_at: null,
        last_value: null,
        last_checked_at: null,
      }
      expect([created.status, created.body.data]).toMatchObject([201, alert])
      const { id } = created.body.data
      expect((await send('GET', '/alerts')).body.data).toEqual([created.body.data])
      api.now.ms += 1000
      const changed = await send('PATCH', `/alerts/${id}`, { threshold: 20 })
      expect([changed.status, changed.body.data]).toMatchObject([200, { ...alert, threshold: 20 }])
      expect(changed.body.data.updated_at > created.body.data.updated_at).toBe(true)
      const same = await send('PATCH', `/alerts/${id}`, { threshold: 20, kind: 'share' })
      expect(same.body.data).toEqual(changed.body.data)
      api.now.ms += 1000
      const deleted = await send('DELETE', `/alerts/${id}`)
      expect([deleted.status, deleted.body.data]).toEqual([200, changed.body.data])
      expect((await send('GET', '/alerts')).body.data).toEqual([])
      expect((await send('DELETE', `/alerts/${id}`)).status).toBe(404)
      expect((await send('PATCH', `/alerts/${id}`, { threshold: 3 })).status).toBe(404)
      await api.caughtUp()
      const audit = await send('GET', `/audit-log?subject_id=${id}`)
      expect(audit.body.data).toMatchObject([
        { type: 'AlertDeleted', actor: { type: 'key', id: acme.keyId } },
        { type: 'AlertSaved' },
        { type: 'AlertSaved' },
      ])
    }
    await api
      .given()
      .when(act)
      .thenExpect({
        events: [
          { type: 'AlertSaved', data: { view_id, kind: 'share', threshold: 12.5 } },
          { type: 'AlertSaved', data: { view_id, kind: 'share', threshold: 20 } },
          { type: 'AlertDeleted', data: { view_id } },
        ],
      })
  })

  test.each([
    [{ threshold: 0 }, 'threshold must be an integer from 1 to 1000000 for the kind count'],
    [{ threshold: 1.5 }, 'threshold must be an integer'],
    [
      { kind: 'share', threshold: 101 },
      'threshold must be a number with at most two decimals from 0.01 to 100 for the kind share',
    ],
    [{ kind: 'multiple', threshold: 1 }, 'from 1.01 to 1000 for the kind multiple'],
    [{ kind: 'share', threshold: 12.345 }, 'at most two decimals'],
    [{ kind: 'sum' }, 'kind must be one of count, share, multiple'],
    [{ window_minutes: 4 }, 'window_minutes'],
    [{ window_minutes: 1441 }, 'window_minutes'],
    [{ view_id: 'view_00000000000000000000000000' }, 'view_id'],
  ])('refuses %j', async (overrides, message) => {
    const view_id = await savedView('verdict=bot')
    const { status, body } = await send('POST', '/alerts', { view_id, ...settings, ...overrides })
    expect([status, body.error.message]).toEqual([422, expect.stringContaining(message)])
  })

  test('checks the threshold against the kind that the alert has', async () => {
    const id = await alertOn('', { kind: 'share', threshold: 50 })
    const { status, body } = await send('PATCH', `/alerts/${id}`, { threshold: 200 })
    expect([status, body.error.message]).toEqual([422, expect.stringContaining('from 0.01 to 100')])
    expect((await send('PATCH', `/alerts/${id}`, { kind: 'count', threshold: 200 })).status).toBe(
      200,
    )
  })

  test('refuses the 51st alert', async () => {
    const view_id = await savedView('')
    for (let i = 0; i < 50; i++)
      expect((await send('POST', '/alerts', { view_id, ...settings })).status).toBe(201)
    const { status, body } = await send('POST', '/alerts', { view_id, ...settings })
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('50 alerts')])
  })

  test('a repeated POST creates one alert', async () => {
    const view_id = await savedView('')
    const sent = {
      method: 'POST',
      url: `${acme.path}/alerts`,
      key: acme.key,
      body: { view_id, ...settings },
      headers: { 'idempotency-key': 'k' },
    } as const
    const [first, second] = [await api.send(sent), await api.send(sent)]
    expect(second.body).toEqual(first.body)
    expect((await send('GET', '/alerts')).body.data).toHaveLength(1)
  })

  test('belongs to one organization and environment', async () => {
    const view_id = await savedView('')
    const { organizationId } = acme
    const scopes = ['views:manage', 'sessions:list']
    const ofTest = await api.issue({ organizationId, environment: 'test', scopes })
    const body = { view_id, ...settings }
    expect((await send('POST', '/alerts', body, ofTest.revealedKey)).status).toBe(422)
    const id = await alertOn('verdict=bot')
    expect((await send('GET', '/alerts', undefined, ofTest.revealedKey)).body.data).toEqual([])
    expect((await send('DELETE', `/alerts/${id}`, undefined, ofTest.revealedKey)).status).toBe(404)
    const other = await api.organization()
    expect((await send('DELETE', `/alerts/${id}`, undefined, other.key)).status).toBe(403)
  })

  test('a deleted view or organization takes its alerts with it', async () => {
    const id = await alertOn('verdict=bot')
    const kept = await alertOn('verdict=human')
    const { view_id } = await alertWith(id)
    expect((await send('DELETE', `/views/${view_id}`)).status).toBe(200)
    expect((await send('GET', '/alerts')).body.data).toMatchObject([{ id: kept }])
    const { organizationId } = acme
    await changeOrganization(api.deps, organizationId, (state, change) =>
      decideOrganizationUpdate(state, { ...change, by: 'operator', status: 'deleted' }),
    )
    await purgeViewsOfDeleted(api.pool)
    const { rows } = await api.pool.query(
      'select from tidegate.alerts where organization_id = $1',
      [organizationId],
    )
    expect(rows).toEqual([])
  })
})

describe('an attack', () => {
  test('raises an alert within two minutes of the 60th session, after three quiet days without any', async () => {
    const receiver = await startWebhookReceiver()
    const meter = createWebhookMeter(new Registry(), async () => {
      throw new Error('not read')
    })
    const dispatcher = await runDispatcher({ ...api.core, meter })
    await subscribe(receiver.url('/alerts'))
    const start = api.now.ms
    const query = 'verdict=bot&last=24h'
    const ids = [
      await alertOn(query),
      await alertOn(`${query}&page_path=%2Fsignup`, { kind: 'share', threshold: 50 }),
      await alertOn(`${query}&country%5Bnot%5D=DE`, { kind: 'multiple', threshold: 4 }),
    ]
    // A person a minute, and a bot every three to five minutes, more by day than by night.
    const people = Array.from({ length: 3 * 24 * 60 }, (_, i) => start + i * minuteMs)
    const some = people.filter((_, i) => i % (i % 1440 < 720 ? 3 : 5) === 0)
    await score(people)
    await score(some, bots)
    for (const end = start + 3 * dayMs; api.now.ms < end; ) {
      api.now.ms += 30 * minuteMs
      await check()
    }
    expect(await raisedEvents()).toEqual([])

    const attack = Array.from({ length: 600 }, (_, i) => api.now.ms + i * 1500)
    await score(attack, bots)
    const sixtieth = some.filter((at) => at > api.now.ms - hourMs).length
    expect(sixtieth).toBeLessThan(60)
    const reachedAt = attack[59] ?? 0
    await checkAfterMinutes(15)
    const events = await raisedEvents()
    expect(events.map(({ type }) => type)).toEqual(ids.map(() => 'alert.opened'))
    const opened = await Promise.all(ids.map(alertWith))
    expect(opened).toMatchObject(ids.map((id) => ({ id, status: 'open', closed_at: null })))
    expect(Date.parse(opened[0].opened_at)).toBeLessThanOrEqual(reachedAt + 2 * minuteMs)
    await eventually(() => expect(receiver.requests).toHaveLength(3))
    expect(new Set(receiver.requests.map(({ eventId }) => eventId)).size).toBe(3)
    expect(receiver.problems).toEqual([])
    const bodies = receiver.requests.map(({ body }) => JSON.parse(body))
    const first = bodies.find(({ data }) => data.alert.id === ids[0])
    expect(first).toEqual({
      id: expect.stringMatching(/^evt_/),
      object: 'webhook_event',
      type: 'alert.opened',
      created: opened[0].opened_at,
      data: {
        object: 'alert',
        alert: { id: ids[0], view_id: opened[0].view_id, ...settings },
        value: expect.any(Number),
        at: opened[0].opened_at,
      },
    })

    api.now.ms += 75 * minuteMs
    await checkAfterMinutes(2)
    expect(await raisedEvents()).toHaveLength(3)
    await checkAfterMinutes(1)
    expect((await raisedEvents()).slice(3).map(({ type }) => type)).toEqual(
      ids.map(() => 'alert.closed'),
    )
    expect(await alertWith(ids[0] ?? '')).toMatchObject({
      status: 'quiet',
      closed_at: new Date(api.now.ms).toISOString(),
    })
    await eventually(() => expect(receiver.requests).toHaveLength(6))
    await dispatcher.stop()
    await receiver.close()
  }, 120_000)
})

describe('a check', () => {
  test('is announced once, although the process died before the event was raised, or after', async () => {
    await subscribe()
    const id = await alertOn('verdict=bot', { threshold: 3 })
    await score(recent(3), bots)
    const raise = createRaise(api.core)
    const dies = async () => {
      throw new Error('died')
    }
    await checkAfterMinutes(2, { raise: dies })
    expect(await raisedEvents()).toEqual([])
    const diesAfterwards: AlertCheckOptions['raise'] = async (notice) => {
      await raise(notice)
      await dies()
    }
    await checkAfterMinutes(2, { raise: diesAfterwards })
    await checkAfterMinutes(3)
    const { opened_at } = await alertWith(id)
    expect(await raisedEvents()).toMatchObject([
      { type: 'alert.opened', created_at: Date.parse(opened_at) },
    ])
  })

  test('is announced once the read model that is being filled has the subscribed endpoint', async () => {
    await subscribe()
    await alertOn('verdict=bot', { threshold: 3 })
    await score(recent(3), bots)
    const offsets = `update tidegate.projection_offsets set next_offset`
    await api.pool.query(`${offsets} = -next_offset where projection = 'webhooks';
      create table kept_endpoints as select * from read.webhook_endpoints; delete from read.webhook_endpoints`)
    await checkAfterMinutes(2, { logger: recording([]) })
    await api.pool.query(`${offsets} = -next_offset where projection = 'webhooks';
      insert into read.webhook_endpoints select * from kept_endpoints; drop table kept_endpoints`)
    expect(await raisedEvents()).toEqual([])
    await checkAfterMinutes(2)
    expect(await raisedEvents()).toMatchObject([{ type: 'alert.opened' }])
  })

  test('happens every minute, even after the check of a clock that was ahead', async () => {
    const id = await alertOn('verdict=bot', { threshold: 3 })
    api.now.ms += hourMs
    await check()
    api.now.ms -= hourMs
    await score(recent(3), bots)
    await checkAfterMinutes(1)
    expect(await alertWith(id)).toMatchObject({ status: 'open', last_value: 3 })
  })

  test('of one alert in each environment comes first', async () => {
    const slow: string[] = []
    for (let i = 0; i < 9; i++) slow.push(await alertOn(''))
    acme = await api.organization()
    const other = await alertOn('')
    const due = await findDueAlerts(api.pool, { now: api.now.ms, recheckMs: 0, limit: 1000 })
    const order = due.map(({ id }) => id).filter((id) => [...slow, other].includes(id))
    expect([order.length, order.indexOf(other) < 2]).toEqual([10, true])
  })

  test('happens once, in several processes', async () => {
    await subscribe()
    await alertOn('verdict=bot', { threshold: 3 })
    await score(recent(3), bots)
    api.now.ms += minuteMs
    await Promise.all([check(), check(), check()])
    await Promise.all([check(), check(), check()])
    expect(await raisedEvents()).toHaveLength(1)
  })

  test('that fails does not stop the others', async () => {
    const failing = await alertOn('verdict=bot', { threshold: 1 })
    const working = await alertOn('verdict=human', { threshold: 1 })
    await subscribe()
    await score(recent(3), bots)
    await score(recent(3))
    const raise = createRaise(api.core)
    const errors: unknown[] = []
    const logger = recording(errors)
    await checkAfterMinutes(1, {
      logger,
      async raise(notice) {
        if (notice.subject.id === failing) throw new Error('no')
        await raise(notice)
      },
    })
    expect(errors).toMatchObject([{ details: { alert_id: failing } }])
    expect(await raisedEvents()).toMatchObject([{ type: 'alert.opened' }])
    expect(await alertWith(working)).toMatchObject({ status: 'open', last_value: 3 })
  })

  test('that fails leaves no value, and is repeated', async () => {
    const id = await alertOn('verdict=bot', { threshold: 4 })
    await score(recent(3), bots)
    await checkAfterMinutes(1)
    const { readPool } = api.core
    let connections = 0
    const failing = Object.create(readPool, {
      query: { value: readPool.query.bind(readPool) },
      // The first connection holds the lock.
      connect: {
        value: () => (++connections > 1 ? Promise.reject(new Error('no')) : readPool.connect()),
      },
    })
    const errors: unknown[] = []
    await checkAfterMinutes(1, { logger: recording(errors), readPool: failing })
    expect(errors).toMatchObject([{ details: { alert_id: id } }])
    expect(await alertWith(id)).toMatchObject({ status: 'quiet', last_value: null })
    await checkAfterMinutes(1)
    expect(await alertWith(id)).toMatchObject({ status: 'quiet', last_value: 3 })
  })

  test('is skipped while the read model is behind', async () => {
    const id = await alertOn('verdict=bot', { threshold: 1 })
    await score(recent(3), bots)
    const warnings: unknown[] = []
    const logger = recording(warnings)
    const log = {
      endPositions: async (topic: string) =>
        (await api.log.endPositions(topic)).map((end) => ({ ...end, offset: end.offset + 1 })),
    }
    const applied = {
      waitFor: async () => {
        throw new Error('behind')
      },
    }
    await checkAfterMinutes(1, { log, applied, logger })
    expect(warnings).toEqual([
      {
        message: 'skipped alert checks: the sessions read model is behind',
        details: { err: expect.any(Error) },
      },
    ])
    expect(await alertWith(id)).toMatchObject({ last_checked_at: null })
  })

  test('counts what the view matches: filters, search, and not its period', async () => {
    const query = 'since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z'
    const found = { request: { ...sessionScored().request, url: 'https://shop.example/needle' } }
    const ids = [
      await alertOn(`${query}&verdict=bot`, { threshold: 1000 }),
      await alertOn(`${query}&search=needle`, { threshold: 1000 }),
      await alertOn(`${query}&search=needle&verdict=bot`, { kind: 'share', threshold: 100 }),
      await alertOn(`${query}&group=country`, { threshold: 1000, window_minutes: 5 }),
    ]
    await score(recent(30), bots)
    await score(recent(10), found)
    await score(recent(20), { ...found, ...bots })
    await score([api.now.ms - 10 * minuteMs, api.now.ms - 2 * hourMs])
    api.now.ms += minuteMs
    await check()
    const values = await Promise.all(ids.map(async (id) => (await alertWith(id)).last_value))
    expect(values).toEqual([50, 30, 32.79, 60])
  })

  test('leaves days out whose decisions have expired', async () => {
    const id = await alertOn('browser=chrome', { kind: 'multiple', threshold: 3 })
    const days = Array.from({ length: 8 }, (_, ago) => api.now.ms - ago * dayMs - minuteMs)
    await score(days.flatMap((at) => Array.from({ length: 20 }, (_, i) => at - i * 1000)))
    await score([api.now.ms - 9 * dayMs])
    await api.pool.query(
      'update read.sessions set scoring_version = null where organization_id = $1 and evaluated_at < $2',
      [acme.organizationId, api.now.ms - 2.5 * dayMs],
    )
    await check()
    expect(await alertWith(id)).toMatchObject({ status: 'quiet', last_value: 1 })
  })

  test('has no value if the query of its view is no longer valid', async () => {
    const id = await alertOn('verdict=bot', { threshold: 1 })
    await score(recent(3), bots)
    const { view_id } = await alertWith(id)
    await api.pool.query(`update tidegate.views set query = 'gone=1' where id = $1`, [view_id])
    const warnings: unknown[] = []
    const logger = recording(warnings)
    await checkAfterMinutes(1, { logger })
    expect(warnings).toMatchObject([{ details: { alert_id: id } }])
    expect(await alertWith(id)).toMatchObject({ status: 'quiet', last_value: null })
  })
})

test('an erasure leaves no alert of a view that names the person, and events have no text of views', async () => {
  await subscribe()
  const visitorId = api.newId('vid')
  const visitor = { ...sessionScored().visitor, id: visitorId } as SessionScored['visitor']
  await alertOn(`visitor_id=${visitorId}`, { threshold: 1 })
  const kept = await alertOn('country=FJ', { threshold: 1 })
  await score(recent(1), { visitor })
  await checkAfterMinutes(1)
  const [event] = await raisedEvents()
  expect(event).toMatchObject({ type: 'alert.opened' })
  const raised = (await api.events()).filter(({ type }) =>
    ['AlertSaved', 'WebhookEventRaised'].includes(type),
  )
  expect(raised.length).toBeGreaterThanOrEqual(3)
  expect(JSON.stringify(raised)).not.toContain(visitorId)
  const erased = await send('DELETE', `/visitors/${visitorId}`)
  expect(erased.status).toBe(200)
  expect((await send('GET', '/alerts')).body.data).toMatchObject([{ id: kept }])
  const { rows } = await api.pool.query('select * from tidegate.alerts')
  expect(JSON.stringify(rows)).not.toContain(visitorId)
})

describe('the decision', () => {
  const quiet: AlertState = { status: 'quiet', opened_at: null, closed_at: null }

  test('opens at the threshold, and closes after three quiet checks in a row', () => {
    const value = fc.option(fc.integer({ min: 0, max: 20 }), { nil: null })
    fc.assert(
      fc.property(fc.array(value), (values) => {
        let state: AlertState = quiet
        const statuses = values.map((value, now) => {
          state = decideCheck(state, { value, threshold: 10, now })
          return state.status
        })
        // Open if one of the last checks reached it, unless three quiet ones follow.
        const expected = values.map((_, i) =>
          values.slice(Math.max(0, i - 2), i + 1).some((value) => (value ?? 0) >= 10),
        )
        expect(statuses.map((status) => status === 'open')).toEqual(expected)
        const changes = statuses.filter((status, i) => status !== (statuses[i - 1] ?? 'quiet'))
        expect(state.opened_at !== null).toBe(changes.length > 0)
      }),
    )
  })

  test.each([
    ['count', { matching: 3, total: 0, before: [] }, 3],
    ['share', { matching: 5, total: 19, before: [] }, null],
    ['share', { matching: 5, total: 20, before: [] }, 25],
    ['multiple', { matching: 19, total: 0, before: [1, 1] }, null],
    ['multiple', { matching: 30, total: 0, before: [] }, null],
    ['multiple', { matching: 30, total: 0, before: [10, 2] }, 5],
    ['multiple', { matching: 30, total: 0, before: [0, 0] }, 30],
  ] as const)('of the kind %s compares with %j', (kind, counts, expected) => {
    expect(alertValue(kind, { ...counts, before: [...counts.before] })).toBe(expected)
  })
})
