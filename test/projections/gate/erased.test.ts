import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  erasedSession,
  evolveSession,
  type GateSessionEvent,
  isGateSessionEvent,
} from '../../../projections/gate/evolve.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { events, recorded, start } from './events.ts'

type State = GateSessionRow | undefined

const kinds = [
  'started',
  'claimRequested',
  'claimFailed',
  'claimed',
  'approved',
  'rejected',
  'expired',
  'acknowledged',
  'deliveryExpired',
  'loginApproved',
  'codeConsumed',
  'codeExpired',
] as const

const after = (state: State, some: GateSessionEvent[]) => some.reduce<State>(evolveSession, state)
/** As if the session was erased before its events were read. */
const afterErasure = (state: State, some: GateSessionEvent[]) =>
  some.reduce<State>((row, event) => {
    const next = evolveSession(row, event)
    return next && erasedSession(next)
  }, state)

test('an erased session has the same state, wherever the erasure falls in its events', () => {
  const opening = fc.constantFrom('opened', 'loginOpened')
  const story = fc.tuple(opening, fc.array(fc.constantFrom(...kinds), { maxLength: 8 }))
  const property = fc.property(story, ([first, rest]) => {
    const all = [first, ...rest]
      .map((kind, i) => recorded(events[kind](1, start + i)))
      .filter(isGateSessionEvent)
    const expected = afterErasure(undefined, all)
    for (let at = 1; at <= all.length; at++) {
      const before = after(undefined, all.slice(0, at))
      expect(afterErasure(before && erasedSession(before), all.slice(at)), `after ${at}`).toEqual(
        expected,
      )
    }
    expect(expected).toMatchObject({
      account_name: '',
      requested_ip: null,
      requested_user_agent: null,
    })
    expect(expected?.status).not.toBe('pending')
  })
  fc.assert(property, { seed: Number(process.env.SEED ?? 33), numRuns: 500 })
})
