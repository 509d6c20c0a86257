import fc from 'fast-check'
import { expect, test } from 'vitest'
import { asId } from '../../../../infra/ids.ts'
import { evolveAgentToken, isTokenEvent } from '../../../../projections/gate/evolve.ts'
import type { AgentTokenRow } from '../../../../projections/gate/tables.ts'
import {
  decideRenewal,
  decideRevocation,
  tokenInScope,
  usableToken,
} from '../../../../services/gate/accounts/decide.ts'
import { day, eventsOf, now, outcome, scope, strangers, token } from '../fixtures.ts'

const subject = { gate_session_id: token.gate_session_id, gate_account_id: token.gate_account_id }
const revoked: AgentTokenRow = { ...token, status: 'revoked' }

test('a token is usable until it expires or is revoked', () => {
  expect(usableToken(token, token.expires_at - 1)).toBe(token)
  expect(usableToken(token, token.expires_at)).toBeUndefined()
  expect(usableToken(revoked, now)).toBeUndefined()
  expect(usableToken(undefined, now)).toBeUndefined()
})

test('a token is visible only to its organization and environment', () => {
  expect(tokenInScope(token, scope)).toBe(token)
  for (const stranger of strangers) expect(tokenInScope(token, stranger)).toBeUndefined()
  // Token of the built-in service.
  expect(tokenInScope({ ...token, organization_id: null }, scope)).toBeUndefined()
})

test('a token used within a day is not renewed; after that, it gets another 90 days', () => {
  expect(decideRenewal(token, { now: now + day })).toEqual([])
  const at = now + day + 1
  expect(eventsOf(decideRenewal(token, { now: at }))).toEqual([
    { type: 'AgentTokenRenewed', data: { ...subject, expires_at: at + 90 * day, renewed_at: at } },
  ])
  for (const state of [revoked, { ...token, expires_at: now + 2 * day }, undefined])
    expect(decideRenewal(state, { now: now + 2 * day })).toEqual([])
})

test('a token is revoked once, even after it has expired', () => {
  const command = { ...scope, now: now + 5 }
  const expected = [{ type: 'AgentTokenRevoked', data: { ...subject, revoked_at: now + 5 } }]
  expect(eventsOf(decideRevocation(token, command))).toEqual(expected)
  expect(eventsOf(decideRevocation({ ...token, expires_at: 1 }, command))).toEqual(expected)
  expect(decideRevocation(revoked, command)).toEqual([])
})

test('revoking a token that is unknown or in another scope throws 404', () => {
  const revocation = (state: AgentTokenRow | undefined, by: Parameters<typeof tokenInScope>[1]) =>
    outcome(() => decideRevocation(state, { ...by, now }))
  expect(revocation(undefined, scope)).toBe('request.not_found')
  for (const stranger of strangers)
    for (const state of [token, revoked])
      expect(revocation(state, stranger)).toBe('request.not_found')
})

/** A token is valid for 89 to 90 days after its last use, and never after a revocation. */
test('a token in use never expires, and an unused one does', () => {
  const step = fc.record({
    wait: fc.oneof(fc.integer({ min: 0, max: 2 * day }), fc.integer({ min: 0, max: 100 * day })),
    does: fc.constantFrom('use', 'use', 'use', 'use', 'revoke'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let state: AgentTokenRow = token
      let [at, usedAt, renewedAt, isRevoked] = [now, now, now, false]
      for (const { wait, does } of steps) {
        at += wait
        const isGood = usableToken(state, at) !== undefined
        if (isRevoked || at - usedAt >= 90 * day) expect(isGood).toBe(false)
        else if (at - usedAt < 89 * day) expect(isGood).toBe(true)
        const decide = does === 'use' ? decideRenewal : decideRevocation
        for (const { event, meta } of decide(state, { ...scope, now: at })) {
          const position = { topic: 'tidegate.gate.v1', partition: 0, offset: 0 } as const
          const recorded = { ...event, meta, value: Buffer.alloc(0), position }
          if (!isTokenEvent(recorded)) throw new Error(`${event.type} is not about a token`)
          if (recorded.type === 'AgentTokenRenewed') {
            // At most one event a day.
            expect(at - renewedAt).toBeGreaterThan(day)
            renewedAt = at
          }
          state = evolveAgentToken(state, recorded, undefined) ?? state
        }
        if (does === 'use' && isGood) usedAt = at
        if (does === 'revoke') isRevoked = true
      }
    }),
  )
})

test('the same renewal has the same event id, and another renewal another', () => {
  const idAt = (at: number, of = token) => decideRenewal(of, { now: at })[0]?.meta.eventId
  expect(idAt(now + 2 * day)).toBe(idAt(now + 2 * day))
  expect(idAt(now + 2 * day)).not.toBe(idAt(now + 3 * day))
  const other = { ...token, gate_account_id: asId('gacct', `gacct_${'9'.repeat(26)}`) }
  expect(idAt(now + 2 * day)).not.toBe(idAt(now + 2 * day, other))
})
