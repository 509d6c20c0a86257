import { expect, test } from 'vitest'
import { createLocalDecisions } from '../../../services/server/local-decisions.ts'
import { sessionScored } from '../../support/session-scored.ts'

test('a local decision is returned once, after the read model has it', () => {
  let applied = (_ids: readonly string[]) => {}
  const localDecisions = createLocalDecisions({
    onChange(_, listener) {
      applied = listener
      return () => {}
    },
  })
  const handOffDecision = sessionScored({ reason: 'hand_off' })
  const first = sessionScored({ event_id: 'evt_first', reason: 'first' })
  localDecisions.add(handOffDecision)
  localDecisions.add({ ...handOffDecision, verdict: 'bot' })
  localDecisions.add(first)
  const { event_id, session_id, verdict } = handOffDecision
  expect(localDecisions.take([event_id])).toEqual([])
  applied([event_id, 'evt_first', 'evt_other'])
  expect(localDecisions.take([event_id])).toMatchObject([{ event_id, session_id, verdict }])
  expect(localDecisions.take([event_id, 'evt_first'])).toEqual([])
})
