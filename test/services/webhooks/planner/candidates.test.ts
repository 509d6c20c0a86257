import { describe, expect, test } from 'vitest'
import type { EndpointFilter } from '../../../../schemas/events.ts'
import {
  candidatesOf,
  type EventCandidate,
  endpointsFor,
} from '../../../../services/webhooks/planner/candidates.ts'
import { metaOf, sessionScored } from '../../../support/session-scored.ts'

const data = sessionScored()
const day = 24 * 60 * 60 * 1000
const found = (some: object = {}, now = data.created_at) =>
  candidatesOf(
    {
      type: 'SessionScored',
      data,
      meta: metaOf(data),
      value: Buffer.alloc(0),
      position: { topic: 't', partition: 0, offset: 0 },
      ...some,
    },
    now,
  )
const [candidate] = found() as [EventCandidate]
const { organization_id, environment } = data
const subscription = `${organization_id} ${environment} ${candidate.type}`
const scope = { organization_id, environment, event_types: [candidate.type] }
const subscriber = { ...scope, id: 'we_1', filter: null, created_at: data.evaluated_at }
const endpointIds = ['we_1']

test('a session that is older than the retention or was erased has no candidates', () => {
  expect(found()).toHaveLength(1)
  expect(found({}, data.created_at + 31 * day)).toEqual([])
  expect(found({ unreadable: 'no key' })).toEqual([])
})

const gets = (some: object, of = candidate) =>
  endpointsFor(of, new Map([[subscription, [{ ...subscriber, ...some }]]]))

test('an event goes to subscribers that existed at its decision, give or take the clock skew', () => {
  const created = (createdIn: number) => gets({ created_at: data.evaluated_at + createdIn })
  expect([created(0), created(60_000), created(60_001)]).toEqual([endpointIds, endpointIds, []])
  expect(endpointsFor(candidate, new Map())).toEqual([])
})

describe('a subscriber with a filter', () => {
  const verdicts = ['bot', 'human', 'inconclusive'] as const
  const filters: EndpointFilter[] = [null, 0, 60, 100].flatMap((min_risk_score) => [
    { verdicts: null, min_risk_score },
    { verdicts: ['bot'], min_risk_score },
    { verdicts: ['human', 'inconclusive'], min_risk_score },
  ])

  test.each(filters)(
    'of verdicts $verdicts and $min_risk_score gets the decisions that match',
    (filter) => {
      for (const verdict of verdicts) {
        for (const risk_score of [0, 59, 60, 61, 100]) {
          const decision = { ...candidate.decision, verdict, risk_score }
          const matches =
            (filter.verdicts === null || filter.verdicts.includes(verdict)) &&
            (filter.min_risk_score === null || risk_score >= filter.min_risk_score)
          expect(gets({ filter }, { ...candidate, decision })).toEqual(matches ? endpointIds : [])
        }
      }
    },
  )
})
