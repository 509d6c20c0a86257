import { expect, it } from 'vitest'
import type { SessionMark } from '../../../projections/sessions/marks.ts'
import type { SessionSelector } from '../../../projections/sessions/selected-sessions.ts'
import {
  decideMark,
  decideUnmark,
  type MarkState,
  maxSessionsPerMark,
} from '../../../services/marks/decide.ts'
import { refusal } from '../organizations/fixtures.ts'

const scope = { organizationId: 'org_1', environment: 'live' as const }
const sessions = ['sid_1', 'sid_2', 'sid_3']

function mark(target: SessionSelector, state: Partial<MarkState> = {}) {
  const command = {
    scope,
    markId: 'mrk_1',
    label: 'bot' as const,
    reason: 'charged_back',
    target,
    now: 5,
  }
  return decideMark({ sessions, marks: new Map(), ...state }, command)
}

it('returns an event for each marked session', () => {
  const decided = mark({ sessionIds: sessions })
  const alike = {
    mark_id: 'mrk_1',
    label: 'bot',
    reason: 'charged_back',
    marked_at: 5,
    environment: 'live',
  }
  expect(decided.map(({ event }) => event)).toMatchObject(
    sessions.map((session_id) => ({ type: 'SessionMarked', data: { session_id, ...alike } })),
  )
  const ids = decided.map(({ meta }) => meta.eventId)
  expect([new Set(ids).size, mark({ visitorId: 'vid_1' }).map(({ meta }) => meta.eventId)]).toEqual(
    [3, ids],
  )
})

const before = { id: 'mrk_0', label: 'bot', reason: 'charged_back', marked_at: 4 } as const

it('returns no event for sessions that already have the label and reason', () => {
  const marks = new Map<string, SessionMark | null>([
    ['sid_1', before],
    ['sid_2', { ...before, reason: null }],
    ['sid_3', null],
  ])
  const marked = mark({ sessionIds: sessions }, { marks }).map(({ event }) => event.data)
  expect(marked).toMatchObject([
    { session_id: 'sid_2', marked_at: 5 },
    { session_id: 'sid_3', marked_at: 5 },
  ])
  const all = new Map(sessions.map((session) => [session, before]))
  expect(mark({ sessionIds: sessions }, { marks: all })).toEqual([])
})

it('a retry after a partial append returns the remaining events with the time of the first attempt', () => {
  const decided = mark(
    { sessionIds: sessions },
    { marks: new Map([['sid_2', { ...before, id: 'mrk_1' }]]) },
  )
  expect(decided.map(({ event }) => event.data)).toMatchObject([
    { session_id: 'sid_1', marked_at: 4 },
    { session_id: 'sid_3', marked_at: 4 },
  ])
})

it.each<[string, SessionSelector, string[], object]>([
  [
    'an unknown session',
    { sessionIds: ['sid_1', 'sid_9'] },
    ['sid_1'],
    { name: 'session_ids', received: 'sid_9' },
  ],
  [
    'a visitor without sessions',
    { visitorId: 'vid_1' },
    [],
    { name: 'visitor_id', issue: 'not_found' },
  ],
  [
    'a user without sessions',
    { clientUserId: 'a' },
    [],
    { name: 'client_user_id', issue: 'not_found' },
  ],
])('throws for %s, and marks nothing', (_, target, found, field) => {
  expect(refusal(() => mark(target, { sessions: found }))).toMatchObject({
    code: 'request.validation_failed',
    details: { fields: [field] },
  })
})

it('marks a visitor with exactly the maximum number of sessions, and throws for one more', () => {
  const many = Array.from({ length: maxSessionsPerMark + 1 }, (_, i) => `sid_${i}`)
  expect(mark({ visitorId: 'vid_1' }, { sessions: many.slice(1) })).toHaveLength(maxSessionsPerMark)
  expect(refusal(() => mark({ visitorId: 'vid_1' }, { sessions: many })).details).toMatchObject({
    fields: [{ name: 'visitor_id', issue: 'too_large', expected: 'at most 1000 sessions' }],
  })
})

it('removes a mark from each of its sessions, and throws 404 for a mark without sessions', () => {
  const command = { scope, markId: 'mrk_1', now: 6 }
  expect(decideUnmark(['sid_1', 'sid_2'], command).map(({ event }) => event)).toMatchObject([
    { type: 'SessionUnmarked', data: { session_id: 'sid_1', mark_id: 'mrk_1', unmarked_at: 6 } },
    { type: 'SessionUnmarked', data: { session_id: 'sid_2', mark_id: 'mrk_1', unmarked_at: 6 } },
  ])
  expect(refusal(() => decideUnmark([], command)).code).toBe('request.not_found')
})
