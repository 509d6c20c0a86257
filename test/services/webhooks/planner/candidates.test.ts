import { expect, test } from 'vitest'
import {
  candidatesOf,
  type EventCandidate,
  type Known,
  stageOf,
} from '../../../../services/webhooks/planner/candidates.ts'
import { metaOf, sessionScored } from '../../../support/session-scored.ts'

const data = sessionScored()
const [candidate] = candidatesOf(
  {
    type: 'SessionScored',
    data,
    meta: metaOf(data),
    value: Buffer.alloc(0),
    position: { topic: 't', partition: 0, offset: 0 },
  },
  data.created_at,
) as [EventCandidate]
const subscription = `${data.organization_id} ${data.environment} ${candidate.type}`
const nothing: Known = { settled: new Set(), unsubscribed: new Set() }

const subscribers = (createdAt: number) => new Map([[subscription, [endpoint(createdAt)]]])

function endpoint(created_at: number) {
  const { organization_id, environment } = data
  return { id: 'we_1', organization_id, environment, event_types: [candidate.type], created_at }
}

test.each<[string, { given: Partial<Known>; stage: ReturnType<typeof stageOf> }]>([
  ['nothing', { given: {}, stage: { name: 'pending' } }],
  [
    'that it was raised here',
    { given: { settled: new Set([candidate.id]) }, stage: { name: 'settled' } },
  ],
  [
    'that nobody had the subscription a moment ago',
    { given: { unsubscribed: new Set([subscription]) }, stage: { name: 'unsubscribed' } },
  ],
  [
    'that nobody is subscribed',
    { given: { subscribers: new Map() }, stage: { name: 'unsubscribed' } },
  ],
  [
    'an endpoint',
    {
      given: { subscribers: subscribers(data.evaluated_at) },
      stage: { name: 'subscribed', endpointIds: ['we_1'] },
    },
  ],
  [
    'an endpoint that was made within what clocks differ by',
    {
      given: { subscribers: subscribers(data.evaluated_at + 60_000) },
      stage: { name: 'subscribed', endpointIds: ['we_1'] },
    },
  ],
  [
    'an endpoint that was made after the decision',
    {
      given: { subscribers: subscribers(data.evaluated_at + 60_001) },
      stage: { name: 'unsubscribed' },
    },
  ],
  [
    'an endpoint, and that it was not raised',
    {
      given: { subscribers: subscribers(data.evaluated_at), raised: new Set() },
      stage: { name: 'due', endpointIds: ['we_1'] },
    },
  ],
  [
    'an endpoint, and that it was raised',
    {
      given: { subscribers: subscribers(data.evaluated_at), raised: new Set([candidate.id]) },
      stage: { name: 'settled' },
    },
  ],
])('knowing %s', (_, { given, stage }) => {
  expect(stageOf(candidate, { ...nothing, ...given })).toEqual(stage)
})
