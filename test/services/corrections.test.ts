import { expect, it } from 'vitest'
import {
  decideMerge,
  decideSplit,
  maxSessionsPerCorrection,
  splitVisitorId,
} from '../../services/corrections/decide.ts'
import { refusal } from './organizations/fixtures.ts'

const scope = { organizationId: 'org_1', environment: 'live' as const }
const about = { scope, visitorId: 'vid_a', reason: 'They called us.', now: 5 }
const sessions = ['sid_1', 'sid_2', 'sid_3']
const split = (sessionIds: string[], state = { sessions, alreadySplit: [] as string[] }) =>
  decideSplit(state, { ...about, sessionIds }).map(({ event }) => event)
const merge = (some: { mergedVisitorId?: string; hasSurvivor?: boolean; sessions?: string[] }) =>
  decideMerge(
    { hasSurvivor: true, sessions, ...some },
    { ...about, mergedVisitorId: 'vid_b', ...some },
  ).map(({ event }) => event)

it('a split returns an event for each session that moves to the new visitor', () => {
  const [corrected, ...moves] = split(['sid_3', 'sid_1'])
  const visitor_id = splitVisitorId('vid_a', ['sid_1', 'sid_3'])
  expect(corrected).toMatchObject({
    type: 'VisitorCorrected',
    data: {
      kind: 'split',
      visitor_id: 'vid_a',
      other_visitor_id: visitor_id,
      reason: about.reason,
    },
  })
  expect(moves.map(({ type, data }) => ({ type, ...data }))).toMatchObject(
    ['sid_3', 'sid_1'].map((session_id) => ({
      type: 'VisitorSplit',
      cause: 'operator',
      session_id,
      visitor_id,
      earlier_visitor_id: 'vid_a',
    })),
  )
})

it('a repeated split returns no events', () => {
  expect(split(['sid_1'], { sessions: ['sid_2'], alreadySplit: ['sid_1'] })).toEqual([])
})

it.each([
  ['that are not of the visitor', ['sid_9'], 'is not of this visitor'],
  ['that are all sessions of the visitor', sessions, 'leaves the visitor no session'],
])('throws 422 for sessions %s', (_, sessionIds, issue) => {
  expect(refusal(() => split(sessionIds)).details).toMatchObject({
    fields: [{ name: 'session_ids', issue }],
  })
})

it('a merge returns an event for each session that moves to the surviving visitor', () => {
  const [corrected, ...moves] = merge({})
  expect(corrected).toMatchObject({
    data: { kind: 'merge', visitor_id: 'vid_a', other_visitor_id: 'vid_b', session_ids: sessions },
  })
  expect(moves.map(({ data }) => data)).toMatchObject(
    sessions.map((session_id) => ({
      session_id,
      visitor_id: 'vid_a',
      earlier_visitor_id: 'vid_b',
    })),
  )
})

it('a merge throws for the same visitor, an unknown one, and one with too many sessions', () => {
  const many = Array.from({ length: maxSessionsPerCorrection + 1 }, (_, i) => `sid_${i}`)
  for (const bad of [{ mergedVisitorId: 'vid_a' }, { sessions: many }])
    expect(refusal(() => merge(bad)).details).toMatchObject({ fields: [{ name: 'visitor_id' }] })
  for (const missing of [{ sessions: [] }, { hasSurvivor: false }])
    expect(refusal(() => merge(missing)).code).toBe('request.not_found')
})
