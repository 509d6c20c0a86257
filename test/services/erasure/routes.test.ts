import { afterAll, beforeEach, expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { type ApiOrganization, startApi } from '../../support/api.ts'
import { sessionScored, visitorLink } from '../../support/session-scored.ts'

let acme: ApiOrganization
const api = await startApi()
beforeEach(async () => {
  acme = await api.organization()
})
afterAll(() => api.stop())

/** Writes a decision about a new session of the visitor. */
function scored(visitorId: string): Extract<DomainEvent, { type: 'SessionScored' }> {
  const data = sessionScored({
    organization_id: acme.organizationId,
    event_id: api.newId('evt'),
    session_id: api.newId('sid'),
    visitor: visitorLink({ id: visitorId }),
  })
  return { type: 'SessionScored', data }
}

const erase = (visitorId: string) =>
  ({ method: 'DELETE', url: `${acme.path}/visitors/${visitorId}`, key: acme.key }) as const

test('erases a visitor with its sessions, and no others', async () => {
  const [one, other] = [api.newId('vid'), api.newId('vid')]
  const sessions = [scored(one), scored(one)]
  const otherScored = scored(other)
  const { body } = await api
    .given(...sessions, otherScored)
    .when(erase(one))
    .thenExpect({
      answer: { status: 200, body: { data: { counts: { sessions: 2, visitors: 1 } } } },
      events: [{ type: 'VisitorErased', data: { erased_visitor_ids: [one] } }],
      rows: {
        [`select session_id from read.sessions where organization_id = '${acme.organizationId}'`]: [
          { session_id: otherScored.data.session_id },
        ],
      },
    })
  const again = await api.given().when(erase(one)).thenExpect({ events: [] })
  expect(again.body.data).toEqual(body.data)
})

const saveView = async (query: string) => {
  const body = { name: api.newId('evt'), query }
  const { status } = await api.send({
    method: 'POST',
    url: `${acme.path}/views`,
    key: acme.key,
    body,
  })
  expect(status).toBe(201)
}
const viewQueries = `select query from tidegate.views where organization_id = `

test('deletes saved views that name an erased visitor, its sessions or what was merged into it', async () => {
  const [one, merged, oldest, other] = ['vid', 'vid', 'vid', 'vid'].map(() => api.newId('vid'))
  if (!one || !merged || !oldest || !other) throw new Error('no ids')
  const session = scored(one)
  const about = { organization_id: acme.organizationId, environment: 'live' as const }
  const merge = (visitor_id: string, other_visitor_id: string): DomainEvent => ({
    type: 'VisitorCorrected',
    data: {
      ...about,
      kind: 'merge',
      visitor_id,
      other_visitor_id,
      session_ids: [],
      reason: 'One person.',
      corrected_at: 1,
    },
  })
  const named = [
    `verdict=bot&visitor_id=${one}`,
    `visitor_id=${other}&visitor_id=${one.toUpperCase()}`,
    `visitor_id%5Bnot%5D=${merged}`,
    `search=${oldest}`,
    `search=${session.data.session_id}`,
  ]
  const kept = ['country=DE', 'search=vid_', `visitor_id=${other}`]
  const events = [...named.map(() => ({ type: 'ViewDeleted' })), { type: 'VisitorErased' }]
  await api
    .given(session, scored(other), merge(one, merged), merge(merged, oldest))
    .when(async () => {
      for (const query of [...kept, ...named]) await saveView(query)
    })
    .thenExpect({})
  const { body } = await api
    .given()
    .when(erase(one))
    .thenExpect({
      answer: { status: 200, body: { data: { counts: { views: named.length } } } },
      events,
      rows: {
        [`${viewQueries}'${acme.organizationId}' order by query`]: kept.map((query) => ({
          query,
        })),
      },
    })
  // Saved after the erasure, so only a repeat can delete it.
  await saveView(`visitor_id=${one}`)
  const again = await api
    .given()
    .when(erase(one))
    .thenExpect({ events: [{ type: 'ViewDeleted' }] })
  expect(again.body.data).toEqual(body.data)
})

test('deletes saved views that name an erased user, but not those with a shared visitor', async () => {
  const [own, shared] = [scored(api.newId('vid')), scored(api.newId('vid'))]
  const sharedVisitor = shared.data.visitor?.id
  const attached = (session: typeof own, client_user_id: string): DomainEvent => {
    const { session_id, organization_id, environment } = session.data
    const about = { session_id, organization_id, environment, event_id: api.newId('evt') }
    return { type: 'ClientUserAttached', data: { ...about, client_user_id, attached_at: 1 } }
  }
  const ofOther = {
    ...shared,
    data: { ...shared.data, session_id: api.newId('sid'), event_id: api.newId('evt') },
  }
  const sessions = [own, shared, ofOther]
  await api
    .given(...sessions, attached(own, 'ada ü'), attached(shared, 'ada ü'), attached(ofOther, 'bob'))
    .when(async () => {
      await saveView(`client_user_id=bob`)
      await saveView(`visitor_id=${sharedVisitor}`)
      await saveView(`client_user_id=ada+%C3%BC&last=7d`)
      await saveView(`search=Ada+%C3%9C`)
      await saveView(`visitor_id=${own.data.visitor?.id}`)
      await saveView(`search=${shared.data.session_id}`)
    })
    .thenExpect({})
  const url = `${acme.path}/users/${encodeURIComponent('ada ü')}`
  await api
    .given()
    .when({ method: 'DELETE', url, key: acme.key })
    .thenExpect({
      answer: { status: 200, body: { data: { counts: { sessions: 2, views: 4 } } } },
      rows: {
        [`${viewQueries}'${acme.organizationId}' order by query`]: [
          { query: 'client_user_id=bob' },
          { query: `visitor_id=${sharedVisitor}` },
        ],
      },
    })
})

test('reading an erased visitor names the receipt', async () => {
  const visitorId = api.newId('vid')
  const { body } = await api.given(scored(visitorId)).when(erase(visitorId)).thenExpect({})
  const { id, erased_at } = body.data
  const read = await api.send({ url: `/v1/fingerprints/${visitorId}`, key: acme.key })
  expect(read).toMatchObject({
    status: 404,
    body: {
      error: {
        message: `This visitor was erased on ${erased_at.slice(0, 10)} (${id}).`,
        details: { erasure: { id, erased_at } },
      },
    },
  })
  const other = await api.organization()
  const foreign = await api.send({ url: `/v1/fingerprints/${visitorId}`, key: other.key })
  expect(foreign.body.error).not.toHaveProperty('details')
})

test('exports the data of a visitor, and only the visitor ids of a user', async () => {
  const visitor_id = api.newId('vid')
  const session = scored(visitor_id)
  const { session_id, organization_id, environment } = session.data
  const about = { session_id, organization_id, environment, event_id: api.newId('evt') }
  const attached: DomainEvent = {
    type: 'ClientUserAttached',
    data: { ...about, client_user_id: 'user-1', attached_at: 1 },
  }
  const exported = (person: string) =>
    ({ method: 'GET', url: `${acme.path}/${person}/export`, key: acme.key }) as const
  // The decision was not made by scoring, so the session has no link.
  const sessions = [{ id: session_id, link: null }]
  const lifecycle = { first_seen_at: expect.any(String), seen_count: 1 }
  await api
    .given(session, attached)
    .when(exported(`visitors/${visitor_id}`))
    .thenExpect({
      answer: {
        status: 200,
        body: { data: { visitors: [{ id: visitor_id, ...lifecycle }], sessions } },
      },
    })
  const { body } = await api
    .given()
    .when(exported('users/user-1'))
    .thenExpect({ answer: { status: 200, body: { data: { sessions } } } })
  expect(body.data).toMatchObject({ visitors: [{ id: visitor_id }] })
  expect(JSON.stringify(body.data)).not.toContain('first_seen_at')
})

test('returns 404 for an unknown person', () =>
  api
    .given(scored(api.newId('vid')))
    .when(erase(api.newId('vid')))
    .thenExpect({ answer: { status: 404 }, events: [] }))
