import { describe, expect, test } from 'vitest'
import { formatDuration } from '../../../services/console/pages/shared/format.ts'
import { changesBetween, linkInWords } from '../../../services/console/pages/visitors/links.ts'
import { lossInWords } from '../../../services/console/pages/visitors/loss.ts'
import { groupByVisitor } from '../../../services/console/pages/visitors/of-user.ts'
import type { SessionSummary } from '../../../services/readback/schemas/sessions.ts'
import { sessionSummary } from './session-summary.ts'

type SessionFacts = NonNullable<SessionSummary['facts']>
type VisitorLink = NonNullable<SessionSummary['visitor_fingerprint']>
type Resolution = NonNullable<VisitorLink['resolution']>

const facts: SessionFacts = {
  signals: [],
  page_host: 'shop.example',
  page_path: '/',
  country: 'DE',
  asn: 3320,
  network_holder: 'Telekom',
  network: 'other',
  browser: 'chrome',
  browser_version: '155.0',
  os: 'Linux',
  form_factor: 'desktop',
  agent_status: null,
  agent_provider: null,
  agent_product: null,
  handed_off_at: null,
}

const session = (changes: Partial<SessionFacts> | null = {}, user: string | null = null) =>
  sessionSummary({ client_user_id: user, facts: changes && { ...facts, ...changes } })

const visitorOf = (
  resolution: Resolution = { method: 'continuity', basis: 'deterministic' },
  { id = 'vid_1', confidence = 99 } = {},
): VisitorLink => ({
  object: 'visitor_fingerprint',
  id,
  confidence,
  identified_at: null,
  resolution,
})

describe('what changed from one session to the next', () => {
  test('is each member that both tell, and differently', () => {
    const later = session({ browser_version: '156.0', asn: 24940, network_holder: null })
    expect(changesBetween(session(), later)).toEqual([
      { member: 'Browser', from: 'chrome 155.0', to: 'chrome 156.0' },
      { member: 'Network', from: 'AS3320 Telekom', to: 'AS24940' },
    ])
  })

  test('is nothing where nothing differs, or one of them has ended', () => {
    expect(changesBetween(session(), session())).toEqual([])
    expect(changesBetween(session(null), session())).toEqual([])
    expect(changesBetween(session({ country: null }), session())).toEqual([])
  })

  test('is a user who came or went, too', () => {
    expect(changesBetween(session(), session({}, 'ann'))).toEqual([
      { member: 'User', from: null, to: 'ann' },
    ])
    expect(changesBetween(session({}, 'ann'), session())).toHaveLength(1)
  })
})

test.each<[string, VisitorLink | null]>([
  ['Matched by an id stored in the browser', visitorOf()],
  [
    'Storage was cleared; matched by fingerprint (85 % confidence)',
    visitorOf({ method: 'fingerprint', basis: 'probabilistic' }, { confidence: 85 }),
  ],
  [
    'New visitor (50 % confidence)',
    visitorOf({ method: 'new', basis: 'probabilistic' }, { confidence: 50 }),
  ],
  ['Match unknown', visitorOf({ method: null, basis: 'deterministic' })],
  ['Match unknown', visitorOf({ method: 'unknown', basis: 'deterministic' })],
  ['Match unknown', null],
])('%s, as the page says it', (words, visitor) => {
  expect(linkInWords(visitor)).toBe(words)
})

test('what an erasure takes is counted by kind, and a kind of which there is nothing is left out', () => {
  const bare = { decisions: [{}], marks: [], webhook_events: [] }
  const marked = {
    decisions: [{}, {}],
    marks: [{}],
    webhook_events: [{ deliveries: 2 }, { deliveries: 0 }],
  }
  expect(lossInWords({ visitors: [{}], sessions: [bare] })).toBe('1 session, 1 visitor, 1 decision')
  expect(lossInWords({ visitors: [{}], sessions: [bare, marked] })).toBe(
    '2 sessions, 1 visitor, 3 decisions, 1 label, 2 webhook events, 2 webhook deliveries',
  )
})

test('the visitors of a user are in the order in which they were seen last', () => {
  const second = visitorOf(undefined, { id: 'vid_2' })
  const rows = [visitorOf(), second, visitorOf(), null].map((visitor_fingerprint) =>
    sessionSummary({ visitor_fingerprint }),
  )
  expect(groupByVisitor(rows).map(({ id, sessions }) => [id, sessions])).toEqual([
    ['vid_1', 2],
    ['vid_2', 1],
    [null, 1],
  ])
})

test.each([
  [3 * 86_400_000, '3 days'],
  [90_000, '2 minutes'],
  [1000, '1 second'],
  [0, '0 seconds'],
])('%i ms last %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})
