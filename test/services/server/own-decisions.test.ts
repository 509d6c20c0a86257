import { expect, test } from 'vitest'
import { createLocalDecisions } from '../../../services/server/own-decisions.ts'
import { sessionScored } from '../../support/session-scored.ts'

test("a decision of one's own is taken once, when the read model has it", () => {
  let applied = (_ids: readonly string[]) => {}
  const own = createLocalDecisions({
    onChange(_, listener) {
      applied = listener
      return () => {}
    },
  })
  const made = sessionScored({ reason: 'hand_off' })
  const first = sessionScored({ event_id: 'evt_first', reason: 'first' })
  own.add(made)
  own.add({ ...made, verdict: 'bot' })
  own.add(first)
  const { event_id, session_id, verdict } = made
  expect(own.take([event_id])).toEqual([])
  applied([event_id, 'evt_first', 'evt_other'])
  expect(own.take([event_id])).toMatchObject([{ event_id, session_id, verdict }])
  expect(own.take([event_id, 'evt_first'])).toEqual([])
})
