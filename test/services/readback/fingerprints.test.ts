import { describe, expect, test } from 'vitest'
import type { VisitorSummary } from '../../../services/readback/schemas/fingerprints.ts'
import { visitorLink } from '../../support/session-scored.ts'
import { expectError, expectRefused, id, numbersIn, useReadback } from './support.ts'

const start = 1_760_000_000_000

/** Returns a session of a visitor, evaluated `at` seconds after the start. */
function visit(visitor: number, session: number, at: number) {
  return {
    session_id: id('sid', session),
    event_id: id('evt', session),
    visitor: visitorLink({ id: id('vid', visitor) }),
    evaluated_at: start + at * 1000,
  }
}

const readback = await useReadback()
await readback.score(
  visit(1, 1, 1),
  visit(1, 2, 4),
  visit(1, 3, 5),
  visit(2, 4, 2),
  visit(2, 5, 9),
  visit(3, 6, 3),
  { ...visit(4, 7, 8), environment: 'test' },
  { ...visit(5, 8, 8), organization_id: (await readback.organization()).organizationId },
)

const list = (query = '') => readback.send({ url: `/v1/fingerprints${query}` })

describe('GET /v1/fingerprints', () => {
  test.each([
    ['', [2, 1, 3]],
    ['?sort=seen_count', [1, 2, 3]],
    ['?sort=first_seen', [3, 2, 1]],
    [`?search=${id('vid', 3).toUpperCase()}`, [3]],
    ['?search=vid_', []],
    ['?search=203.0.113', [2, 1, 3]],
    ['?search=no%20such%20agent', []],
    ['?search=%00', []],
    ['?search=%0A', []],
  ])('%s', async (query, found) => {
    expect(numbersIn(await list(query))).toEqual(found)
  })

  test('listed visitors have neither components nor activity', async () => {
    const { data } = (await list('?limit=1')).body
    expect(data).toMatchObject([
      {
        lifecycle: {
          first_seen_at: '2025-10-09T08:53:22.000Z',
          last_seen_at: '2025-10-09T08:53:29.000Z',
          seen_count: 2,
          expires_at: '9999-12-31T00:00:00.000Z',
        },
        latest_request: { ip_address: '203.0.113.9' },
      },
    ])
    expect(data[0]).not.toHaveProperty('components')
    expect(data[0]).not.toHaveProperty('activity')
  })

  test('lists the newest session of each visitor if requested', async () => {
    const { data } = (await list('?include=latest_session')).body
    const latest = data.map((visitor: VisitorSummary) => visitor.latest_session?.id)
    expect(latest).toEqual([id('sid', 5), id('sid', 3), id('sid', 6)])
    expect(data[0].latest_session).toMatchObject({
      verdict: 'human',
      browser: 'Chrome',
      os: 'Linux',
    })
    expect((await list()).body.data[0]).not.toHaveProperty('latest_session')
  })

  test.each(['', 'seen_count', 'first_seen'])(
    'pages through all visitors with sort %j',
    async (sort) => {
      const query = sort && `&sort=${sort}`
      const found: number[] = []
      let cursor = ''
      do {
        const page = await list(`?limit=1${query}&cursor=${cursor}`)
        found.push(...numbersIn(page))
        cursor = page.body.pagination.next_cursor ?? ''
      } while (cursor)
      expect(found).toEqual(numbersIn(await list(`?${query.slice(1)}`)))
    },
  )

  test('a cursor is valid only with the same sort', async () => {
    const { next_cursor } = (await list('?limit=1&sort=seen_count')).body.pagination
    for (const query of ['', '&sort=first_seen', '&sort=seen_count&search=203'])
      expectRefused(await list(`?cursor=${next_cursor}${query}`), 'cursor')
  })

  test.each(['limit=0', 'sort=last_seen', 'sort=', 'cursor=x', 'offset=1'])(
    '%s is refused',
    async (query) => {
      expectRefused(await list(`?${query}`), query)
    },
  )
})

test('GET /v1/fingerprints/{visitorId} returns the vector and the decisions, newest first', async () => {
  const { body } = await list(`/${id('vid', 1)}`)
  expect(body.data.components).toEqual({ vector: [0.25, 1, -3.5] })
  const sessions = body.data.activity.sessions
  expect(sessions.map((session: { session_id: string }) => session.session_id)).toEqual([
    id('sid', 3),
    id('sid', 2),
    id('sid', 1),
  ])
  expect(sessions[0]).toMatchObject({
    decision: { event_id: id('evt', 3), verdict: 'human', phase: 'snapshot' },
    request: {
      url: 'https://example.com/signup',
      screen_size: '1440x900',
      is_touch_capable: false,
    },
    score_breakdown: { categories: { environment: 4, behavioral: 3 } },
  })
})

test.each([id('vid', 4), id('vid', 5), id('vid', 99), id('sid', 1), 'x', '%00'])(
  'GET /v1/fingerprints/{visitorId} returns 404 for %s',
  async (visitor) => {
    expectError(await list(`/${visitor}`), 'request.not_found')
  },
)
