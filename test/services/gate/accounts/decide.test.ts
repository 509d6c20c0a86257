import fc from 'fast-check'
import { expect, test } from 'vitest'
import { asId } from '../../../../infra/ids.ts'
import { evolveAgentToken, isTokenEvent } from '../../../../projections/gate/evolve.ts'
import type { AgentTokenRow } from '../../../../projections/gate/tables.ts'
import {
  decideRenewal,
  decideRevocation,
  ownToken,
  usableToken,
} from '../../../../services/gate/accounts/decide.ts'
import { day, now, token } from '../../../support/gate-rows.ts'
import { eventsOf, refusalOf, scope, strangers } from './given.ts'

const subject = { gate_session_id: token.gate_session_id, gate_account_id: token.gate_account_id }
const revoked: AgentTokenRow = { ...token, status: 'revoked' }

test('a token is good until its time is over, unless it is revoked', () => {
  expect(usableToken(token, token.expires_at - 1)).toBe(token)
  expect(usableToken(token, token.expires_at)).toBeUndefined()
  expect(usableToken(revoked, now)).toBeUndefined()
  expect(usableToken(undefined, now)).toBeUndefined()
})

test('a token is seen by its organization and environment alone', () => {
  expect(ownToken(token, scope)).toBe(token)
  for (const stranger of strangers) expect(ownToken(token, stranger)).toBeUndefined()
  // Of the built-in service.
  expect(ownToken({ ...token, organization_id: null }, scope)).toBeUndefined()
})

test('given a token, when it is used within a day, then nothing happens; after it, then it has 90 days again', () => {
  expect(decideRenewal(token, { now: now + day })).toEqual([])
  const at = now + day + 1
  expect(eventsOf(decideRenewal(token, { now: at }))).toEqual([
    { type: 'AgentTokenRenewed', data: { ...subject, expires_at: at + 90 * day, renewed_at: at } },
  ])
})

test('given a token that is revoked, over or unknown, when it is used, then nothing happens', () => {
  for (const state of [revoked, { ...token, expires_at: now + 2 * day }, undefined]) {
    expect(decideRenewal(state, { now: now + 2 * day })).toEqual([])
  }
})

test('given a token, when it is revoked, then it is; again, then nothing happens, also once its time is over', () => {
  const command = { ...scope, now: now + 5 }
  const expected = [{ type: 'AgentTokenRevoked', data: { ...subject, revoked_at: now + 5 } }]
  expect(eventsOf(decideRevocation(token, command))).toEqual(expected)
  expect(eventsOf(decideRevocation({ ...token, expires_at: 1 }, command))).toEqual(expected)
  expect(decideRevocation(revoked, command)).toEqual([])
})

test("given no token or another's, when it is revoked, then it is not found", () => {
  expect(refusalOf(() => decideRevocation(undefined, { ...scope, now })).code).toBe(
    'request.not_found',
  )
  for (const stranger of strangers) {
    for (const state of [token, revoked]) {
      expect(refusalOf(() => decideRevocation(state, { ...stranger, now }))).toEqual({
        status: 404,
        code: 'request.not_found',
      })
    }
  }
})

type Step = { wait: number; does: 'use' | 'revoke' }

/** What is promised: good for at least 89 days after the last use, never more than 90, never after a revocation. */
interface Promised {
  usedAt: number
  revoked: boolean
}

test('a token in use never ends and one out of use does, whenever it is used', () => {
  const step = fc.record({
    wait: fc.oneof(fc.integer({ min: 0, max: 2 * day }), fc.integer({ min: 0, max: 100 * day })),
    does: fc.constantFrom<Step['does'][]>('use', 'use', 'use', 'use', 'revoke'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let state: AgentTokenRow = token
      let renewals: number[] = []
      const promised: Promised = { usedAt: now, revoked: false }
      let at = now
      for (const { wait, does } of steps) {
        at += wait
        const isGood = usableToken(state, at) !== undefined
        if (promised.revoked || at - promised.usedAt >= 90 * day) expect(isGood).toBe(false)
        else if (at - promised.usedAt < 89 * day) expect(isGood).toBe(true)
        const decisions =
          does === 'use'
            ? decideRenewal(state, { now: at })
            : decideRevocation(state, { ...scope, now: at })
        for (const { event, meta } of decisions) {
          const position = { topic: 'tidegate.gate.v1', partition: 0, offset: 0 } as const
          const recorded = { ...event, meta, value: Buffer.alloc(0), position }
          if (!isTokenEvent(recorded)) throw new Error(`${event.type} is not about a token`)
          if (recorded.type === 'AgentTokenRenewed') {
            // An event a day at most.
            expect(at - (renewals.at(-1) ?? now)).toBeGreaterThan(day)
            renewals = [...renewals, at]
          }
          state = evolveAgentToken(state, recorded, undefined) ?? state
        }
        if (does === 'use' && isGood) promised.usedAt = at
        if (does === 'revoke') promised.revoked = true
      }
    }),
  )
})

test('what follows from the same use has the same event id, from another use another', () => {
  const idAt = (at: number, of = token) => decideRenewal(of, { now: at })[0]?.meta.eventId
  expect(idAt(now + 2 * day)).toBe(idAt(now + 2 * day))
  expect(idAt(now + 2 * day)).not.toBe(idAt(now + 3 * day))
  const other = { ...token, gate_account_id: asId('gacct', `gacct_${'9'.repeat(26)}`) }
  expect(idAt(now + 2 * day)).not.toBe(idAt(now + 2 * day, other))
})
