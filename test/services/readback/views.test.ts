import fc from 'fast-check'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { Decide } from '../../../infra/event-store/decide.ts'
import { runMigrations } from '../../../infra/postgres/migrations.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { changeOrganization } from '../../../services/organizations/commands.ts'
import { decideOrganizationUpdate } from '../../../services/organizations/decide-organization.ts'
import { addView } from '../../../services/readback/views/commands.ts'
import { decideErasedViews, decideViewCreation } from '../../../services/readback/views/decide.ts'
import {
  purgeViewsOfDeleted,
  type ViewRow,
  viewMigrations,
} from '../../../services/readback/views/store.ts'
import { type ApiOrganization, startApi } from '../../support/api.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import type { Send } from '../../support/send.ts'

let acme: ApiOrganization
const api = await startApi({ roles: ['api'] })
beforeEach(async () => {
  acme = await api.organization()
})
afterAll(() => api.stop())

const request = (
  method: NonNullable<Send['method']>,
  path: string,
  body?: object,
  key = acme.key,
) => ({ method, url: `${acme.path}/views${path}`, key, body }) as const
const save = (body: object, key?: string) => api.send(request('POST', '', body, key))
const list = async (key?: string): Promise<unknown[]> =>
  (await api.send(request('GET', '', undefined, key))).body.data
const savedView = async (body: object): Promise<string> => (await save(body)).body.data.id

test('a view is saved, listed, changed and deleted, with an event for each change', async () => {
  const query = 'verdict=bot&country%5Bnot%5D=DE&last=24h'
  const act = async () => {
    const created = await save({
      name: ' Bots abroad ',
      query: '?verdict=bot&country[not]=DE&last=24h',
    })
    const view = { object: 'view', name: 'Bots abroad', query }
    expect([created.status, created.body.data]).toMatchObject([201, view])
    expect(await list()).toEqual([created.body.data])
    const { id, created_at } = created.body.data
    api.now.ms += 1000
    const renamed = await api.send(request('PATCH', `/${id}`, { name: 'Bots' }))
    expect([renamed.status, renamed.body.data]).toMatchObject([200, { id, name: 'Bots', query }])
    expect(renamed.body.data.created_at).toBe(created_at)
    expect(renamed.body.data.updated_at > created_at).toBe(true)
    const same = await api.send(request('PATCH', `/${id}`, { name: 'Bots', query }))
    expect(same.body.data).toEqual(renamed.body.data)
    const changed = await api.send(request('PATCH', `/${id}`, { query: 'asn=AS64500' }))
    expect(changed.body.data).toMatchObject({ name: 'Bots', query: 'asn=AS64500' })
    const deleted = await api.send(request('DELETE', `/${id}`))
    expect([deleted.status, deleted.body.data]).toEqual([200, changed.body.data])
    expect(await list()).toEqual([])
    for (const [method, body] of [['PATCH', { name: 'x' }], ['DELETE']] as const)
      expect((await api.send(request(method, `/${id}`, body))).status).toBe(404)
  }
  const fields = ['verdict', 'country[not]', 'last']
  await api
    .given()
    .when(act)
    .thenExpect({
      events: [
        { type: 'ViewSaved', data: { name: 'Bots abroad', fields } },
        { type: 'ViewSaved', data: { name: 'Bots', fields } },
        { type: 'ViewSaved', data: { name: 'Bots', fields: ['asn'] } },
        { type: 'ViewDeleted', data: { name: 'Bots', fields: ['asn'] } },
      ],
    })
})

test('belongs to one organization and environment', async () => {
  await save({ name: 'Live', query: '' })
  const { organizationId } = acme
  const scopes = ['views:manage', 'sessions:list']
  const ofTest = await api.issue({ organizationId, environment: 'test', scopes })
  expect(await list(ofTest.revealedKey)).toEqual([])
  expect((await save({ name: 'Live', query: '' }, ofTest.revealedKey)).status).toBe(201)
  expect(await list()).toHaveLength(1)
  const other = await api.organization()
  expect((await save({ name: 'Other', query: '' }, other.key)).status).toBe(403)
})

test('reading needs sessions:list, and writing views:manage', async () => {
  const id = await savedView({ name: 'Bots', query: '' })
  const { organizationId } = acme
  const reader = await api.issue({ organizationId, scopes: ['sessions:list'] })
  const writer = await api.issue({ organizationId, scopes: ['views:manage'] })
  const status = async (...sent: Parameters<typeof request>) =>
    (await api.send(request(...sent))).status
  expect(await status('GET', '', undefined, reader.revealedKey)).toBe(200)
  expect(await status('GET', '', undefined, writer.revealedKey)).toBe(403)
  for (const [method, path] of [
    ['POST', ''],
    ['PATCH', `/${id}`],
    ['DELETE', `/${id}`],
  ] as const) {
    const body = method === 'DELETE' ? undefined : { name: `By ${method}`, query: '' }
    expect(await status(method, path, body, reader.revealedKey)).toBe(403)
    expect(await status(method, path, body, writer.revealedKey)).toBeLessThan(300)
  }
})

describe('refuses', () => {
  test.each([
    ['country=Germany', 'query.country must be a two-letter ISO 3166-1 code'],
    ['country=DE&country[not]=1', 'query.country[not] must be a two-letter ISO 3166-1 code'],
    ['verdict=robot', 'query.verdict must be one of '],
    ['colour=red', 'query.colour is not allowed'],
    ['__proto__=1', 'query.__proto__ is not allowed'],
    ['open=sid_1', 'query.open is not allowed'],
    ['last=2h', 'query.last must be one of 1h, 24h, 7d, 30d'],
    ['last=1h&last=7d', 'query.last'],
    ['group=ip', 'query.group'],
    ['score_min=90&score_max=80', 'score_min'],
    ['since=2026-11-26T08:00:00Z&until=2026-11-25T08:00:00Z', 'since'],
    [`search=${'x'.repeat(4096)}`, 'at most 4096 characters'],
    [`search=${'ü'.repeat(1000)}`, 'at most 4096 characters'],
  ])('the query %.40s', async (query, message) => {
    const { status, body } = await save({ name: 'View', query })
    expect([status, body.error.message]).toEqual([422, expect.stringContaining(message)])
  })

  test.each(['', ' ', 'x'.repeat(81), 'a\nb', 'a\u202eb', '\u200b', 7])(
    'the name %j',
    async (name) => {
      const { status, body } = await save({ name, query: '' })
      expect([status, body.error.details.fields]).toMatchObject([422, [{ name: 'name' }]])
    },
  )

  test('a name that another view has, ignoring case', async () => {
    await save({ name: 'Bots', query: '' })
    const id = await savedView({ name: 'People', query: '' })
    for (const again of [
      await save({ name: 'bots', query: 'verdict=bot' }),
      await api.send(request('PATCH', `/${id}`, { name: 'BOTS' })),
    ])
      expect([again.status, again.body.error.details.fields]).toMatchObject([
        409,
        [{ name: 'name' }],
      ])
    expect((await api.send(request('PATCH', `/${id}`, { name: 'people' }))).status).toBe(200)
  })

  test('a name with the value of a personal filter, because it would stay in the audit log', async () => {
    const query = 'client_user_id=ada%40shop.example'
    const { status, body } = await save({ name: 'Orders of Ada@shop.example', query })
    expect([status, body.error.message]).toEqual([422, expect.stringContaining('client_user_id')])
    const id = await savedView({ name: 'A customer', query })
    expect((await api.send(request('PATCH', `/${id}`, { name: 'ada@shop.example' }))).status).toBe(
      422,
    )
  })

  test('the 101st view', async () => {
    const row = (n: number) => viewRow({ id: `view_${n}`, name: `View ${n}` })
    const views = Array.from({ length: 100 }, (_, n) => row(n))
    const next = { ...row(100), now: 1 }
    expect(() => decideViewCreation(views, next)).toThrow('100 saved views')
    expect(decideViewCreation(views.slice(1), next)).toHaveLength(1)
    expect(decideViewCreation(views, { ...row(99), now: 1 })).toEqual([])
  })
})

const viewRow = (overrides: Partial<ViewRow>): ViewRow => ({
  id: 'view_1',
  organization_id: 'org_1',
  environment: 'live',
  name: 'View',
  query: '',
  created_at: 1,
  updated_at: 1,
  ...overrides,
})

test('a repeated POST saves one view', async () => {
  const sent = {
    ...request('POST', '', { name: 'Bots', query: '' }),
    headers: { 'idempotency-key': 'k' },
  }
  const [first, second] = [await api.send(sent), await api.send(sent)]
  expect(second.body).toEqual(first.body)
  expect(await list()).toHaveLength(1)
})

test('a repeat saves the view if the process died after the event, and is one entry in the audit log', async () => {
  const { organizationId } = acme
  const scope = { organizationId, environment: 'live' as const }
  const command = {
    ...api.deps,
    random: (size: number) => Buffer.alloc(size, 7),
    idTime: api.now.ms,
  }
  const dies = async () => {
    throw new Error('died')
  }
  const decide: Decide = (decision) => api.deps.decide({ ...decision, write: dies })
  const content = { name: 'Bots', query: 'verdict=bot' }
  await expect(addView({ ...command, decide }, scope, content)).rejects.toThrow('died')
  expect(await list()).toEqual([])
  const id = await addView(command, scope, content)
  expect(await list()).toMatchObject([{ id, ...content }])
  const audit = await api.send({ url: `${acme.path}/audit-log?subject_id=${id}`, key: acme.key })
  expect(audit.body.data).toHaveLength(1)
})

test('events and the audit log name the filters, never their values', async () => {
  const values = {
    country: 'FJ',
    page_path: '/secret-path',
    client_user_id: 'ada',
    search: 'needle',
  }
  const id = await savedView({ name: 'Audited', query: `${new URLSearchParams(values)}` })
  const audit = await api.send({ url: `${acme.path}/audit-log?subject_id=${id}`, key: acme.key })
  expect(audit.body.data).toMatchObject([
    {
      type: 'ViewSaved',
      environment: 'live',
      view: { name: 'Audited', fields: Object.keys(values) },
      actor: { type: 'key', id: acme.keyId },
    },
  ])
  const events = JSON.stringify([audit.body, await api.events()])
  for (const value of Object.values(values)) expect(events).not.toContain(`"${value}`)
})

test('views of a deleted organization are deleted', async () => {
  await save({ name: 'Bots', query: '' })
  const other = await api.organization()
  await api.send({
    method: 'POST',
    url: `${other.path}/views`,
    key: other.key,
    body: { name: 'Bots', query: '' },
  })
  await changeOrganization(api.deps, acme.organizationId, (state, change) =>
    decideOrganizationUpdate(state, { ...change, by: 'operator', status: 'deleted' }),
  )
  await purgeViewsOfDeleted(api.pool)
  const ids = [acme.organizationId, other.organizationId]
  const { rows } = await api.pool.query(
    'select organization_id from tidegate.views where organization_id = any($1)',
    [ids],
  )
  expect(rows).toEqual([{ organization_id: other.organizationId }])
})

test('an erasure selects the views with a filter or search for one of the ids, and no others', () => {
  const naming = fc.constantFrom(
    'visitor_id',
    'client_user_id',
    'search',
    'visitor_id[not]',
    'client_user_id[not]',
  )
  const others = fc.constantFrom('country', 'page_path', 'page_path[not]', 'browser')
  const value = fc.constantFrom(
    'ada',
    'Ada ',
    'ADA',
    'adam',
    'vid_1',
    'VID_1',
    'vid_10',
    '',
    '%41da',
  )
  const parameters = fc.array(fc.tuple(fc.oneof(naming, others), value), { maxLength: 4 })
  fc.assert(
    fc.property(fc.array(parameters, { maxLength: 5 }), (queries) => {
      const views = queries.map((entries, n) =>
        viewRow({ id: `view_${n}`, query: `${new URLSearchParams(entries)}` }),
      )
      const expected = queries.flatMap((entries, n) =>
        entries.some(
          ([name, text]) =>
            !/^(country|page_path|browser)/.test(name) && /^(ada|vid_1) ?$/i.test(text),
        )
          ? [`view_${n}`]
          : [],
      )
      const erased = decideErasedViews(views, ['Ada', 'vid_1', 'sid_1'])
      expect(erased.map(({ view }) => view.id)).toEqual(expected)
    }),
  )
})

test('a database with saved views gets the table of alerts', async () => {
  const database = await createTestDatabase()
  const create = 'create table tidegate.views (id text collate "C" primary key)'
  const migrateTo = (migrations: typeof viewMigrations) =>
    transaction(database.pool, (tx) => runMigrations(tx, [migrations]))
  await database.pool.query('drop table if exists tidegate.alerts, tidegate.views cascade')
  await database.pool.query(`delete from tidegate.schema_migrations where name = 'views'`)
  await migrateTo({ name: 'views', create })
  await migrateTo(viewMigrations)
  const { rows } = await database.pool.query('select count(*)::integer from tidegate.alerts')
  expect(rows).toEqual([{ count: 0 }])
  await database.drop()
})
