import { describe, expect, test } from 'vitest'
import { formatDuration } from '../../../services/console/pages/shared/format.ts'
import { groupByVisitor } from '../../../services/console/pages/visitors/group-by-visitor.ts'
import {
  changesBetween,
  describeMatch,
} from '../../../services/console/pages/visitors/session-changes.ts'
import type { SessionSummary } from '../../../services/readback/schemas/sessions.ts'
import { sessionSummary } from './session-summary.ts'

type SessionFacts = NonNullable<SessionSummary['facts']>
type VisitorLink = NonNullable<SessionSummary['visitor_fingerprint']>
type Resolution = NonNullable<VisitorLink['resolution']>

const facts: SessionFacts = {
  signals: [],
  top_signal: null,
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

describe('the changes between two sessions', () => {
  test('are the fields that have a different value in both', () => {
    const later = session({ browser_version: '156.0', asn: 24940, network_holder: null })
    expect(changesBetween(session(), later)).toEqual([
      { field: 'Browser', from: 'chrome 155.0', to: 'chrome 156.0' },
      { field: 'Network', from: 'AS3320 Telekom', to: 'AS24940' },
    ])
  })

  test('are none if nothing differs, or if a value is unknown or expired', () => {
    expect(changesBetween(session(), session())).toEqual([])
    expect(changesBetween(session(null), session())).toEqual([])
    expect(changesBetween(session({ country: null }), session())).toEqual([])
  })

  test('include a user id that was added or removed', () => {
    expect(changesBetween(session(), session({}, 'ann'))).toEqual([
      { field: 'User', from: null, to: 'ann' },
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
])('a match is described as "%s"', (words, visitor) => {
  expect(describeMatch(visitor)).toBe(words)
})

test('the visitors of a user are ordered by when they were last seen, each with its newest session', () => {
  const second = visitorOf(undefined, { id: 'vid_2' })
  const rows = [visitorOf(), second, visitorOf(), null].map((visitor_fingerprint, i) =>
    sessionSummary({ id: `sid_${i}`, visitor_fingerprint }),
  )
  const found = groupByVisitor(rows).map(({ id, sessions, latest }) => [id, sessions, latest?.id])
  expect(found).toEqual([
    ['vid_1', 2, 'sid_0'],
    ['vid_2', 1, 'sid_1'],
    [null, 1, 'sid_3'],
  ])
})

test.each([
  [3 * 86_400_000, '3 days'],
  [90_000, '2 minutes'],
  [1000, '1 second'],
  [0, '0 seconds'],
])('%i ms are formatted as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})
