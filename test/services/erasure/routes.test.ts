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

/** A decision about a new session of the visitor. */
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

test('a visitor is erased with its sessions, and others stay', async () => {
  const [one, other] = [api.newId('vid'), api.newId('vid')]
  const sessions = [scored(one), scored(one)]
  const kept = scored(other)
  const { body } = await api
    .given(...sessions, kept)
    .when(erase(one))
    .thenExpect({
      answer: { status: 200, body: { data: { counts: { sessions: 2, visitors: 1 } } } },
      events: [{ type: 'VisitorErased', data: { erased_visitor_ids: [one] } }],
      rows: {
        [`select session_id from read.sessions where organization_id = '${acme.organizationId}'`]: [
          { session_id: kept.data.session_id },
        ],
      },
    })
  const again = await api.given().when(erase(one)).thenExpect({ events: [] })
  expect(again.body.data).toEqual(body.data)
})

test('nobody is erased who is not there', () =>
  api
    .given(scored(api.newId('vid')))
    .when(erase(api.newId('vid')))
    .thenExpect({ answer: { status: 404 }, events: [] }))
