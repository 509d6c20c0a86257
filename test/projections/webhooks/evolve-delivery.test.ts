import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import {
  type DeliveryChange,
  type DeliveryState,
  evolveDelivery,
  isDeliveryEvent,
  newDelivery,
} from '../../../projections/webhooks/evolve-delivery.ts'
import {
  attempted,
  failed,
  raised,
  recorded,
  redelivery,
  skipped,
  succeeded,
  wdlv,
  we,
} from './events.ts'

function changeOf(event: RecordedEvent): DeliveryChange {
  if (!isDeliveryEvent(event) || event.type === 'WebhookEventRaised') throw new Error(event.type)
  return event
}

function begun(): DeliveryState {
  const event = recorded(raised(1))
  if (event.type !== 'WebhookEventRaised') throw new Error(event.type)
  return newDelivery(event, wdlv(1, 1), we(1))
}

const after = (changes: DeliveryChange[]) => changes.reduce(evolveDelivery, begun())

const kinds = [attempted, succeeded, failed]
const report = fc
  .record({
    kind: fc.constantFrom(...kinds),
    attempt: fc.integer({ min: 1, max: 3 }),
    code: fc.nat(9),
  })
  .map(({ kind, attempt, code }) => kind([1, 1], attempt, { response_status: 500 + code }))
const request = fc.constantFrom(skipped, redelivery).map((kind) => kind([1, 1]))
const log = fc.array(
  fc.oneof({ weight: 3, arbitrary: report }, request).map((event) => changeOf(recorded(event))),
  { maxLength: 12 },
)

test('a recorded success wins, whatever else is recorded for the same attempt', () => {
  const property = fc.property(
    log,
    fc.integer({ min: 1, max: 3 }),
    log,
    (before, attempt, later) => {
      const state = after(before)
      fc.pre(state.outcomes.get(attempt) !== true)
      const arrived = evolveDelivery(state, changeOf(recorded(succeeded([1, 1], attempt))))
      const end = later
        .filter(({ type }) => type !== 'WebhookRedeliveryRequested')
        .reduce(evolveDelivery, arrived)
      expect(end.row).toMatchObject({ status: 'succeeded', next_attempt_at: null })
      if (state.row.status !== 'succeeded') expect(end.row.response_status).toBe(200)
      expect(
        end.newAttempts.filter((other) => other.attempt === attempt).map(({ outcome }) => outcome),
      ).toEqual(['succeeded'])
    },
  )
  fc.assert(property, { numRuns: 2000 })
})
