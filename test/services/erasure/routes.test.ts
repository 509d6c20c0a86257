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
