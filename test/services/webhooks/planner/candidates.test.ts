import { expect, test } from 'vitest'
import {
  candidatesOf,
  type EventCandidate,
  type StageLookups,
  stageOf,
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
const subscribers = (createdIn: number) =>
  new Map([[subscription, [{ ...scope, id: 'we_1', created_at: data.evaluated_at + createdIn }]]])
const endpointIds = ['we_1']

test('a session that is older than the retention or was erased has no candidates', () => {
  expect(found()).toHaveLength(1)
  expect(found({}, data.created_at + 31 * day)).toEqual([])
  expect(found({ unreadable: 'no key' })).toEqual([])
})

test.each<[string, Partial<StageLookups>, ReturnType<typeof stageOf>]>([
  ['nothing', {}, { name: 'pending' }],
  ['that this process raised the event', { settled: new Set([candidate.id]) }, { name: 'settled' }],
  [
    'that there was no subscriber a moment ago',
    { unsubscribed: new Set([subscription]) },
    { name: 'unsubscribed' },
  ],
  ['that there is no subscriber', { subscribers: new Map() }, { name: 'unsubscribed' }],
  ['a subscriber', { subscribers: subscribers(0) }, { name: 'subscribed', endpointIds }],
  [
    'a subscriber created within the clock skew',
    { subscribers: subscribers(60_000) },
    { name: 'subscribed', endpointIds },
  ],
  [
    'a subscriber created after the decision',
    { subscribers: subscribers(60_001) },
    { name: 'unsubscribed' },
  ],
  [
    'a subscriber, and that the event was not raised',
    { subscribers: subscribers(0), raised: new Set() },
    { name: 'due', endpointIds },
  ],
  [
    'a subscriber, and that the event was raised',
    { subscribers: subscribers(0), raised: new Set([candidate.id]) },
    { name: 'settled' },
  ],
])('knowing %s', (_, known, stage) => {
  expect(stageOf(candidate, { settled: new Set(), unsubscribed: new Set(), ...known })).toEqual(
    stage,
  )
})
