import { expect, it } from 'vitest'
import { holderOf, type LogClaim } from '../../../infra/event-store/log-claim.ts'

let offset = 0
const claim = (database_id: string, take_over = false): LogClaim => ({
  installation_id: `installation of ${database_id}`,
  database_id,
  database: 'tidegate',
  host: 'server-1',
  take_over,
  offset: offset++,
  time: 0,
})

const holder = (...claims: LogClaim[]) => holderOf(claims)?.database_id

it('a log without claims has no holder', () => {
  expect(holder()).toBeUndefined()
})

it('the first of two concurrent claims holds the log', () => {
  expect(holder(claim('a'), claim('b'))).toBe('a')
  expect(holder(claim('a'), claim('b'), claim('a'), claim('b'))).toBe('a')
})

it('only a take-over changes the holder, and renewals of the former one are ignored', () => {
  expect(holder(claim('a'), claim('b', true))).toBe('b')
  expect(holder(claim('a'), claim('b', true), claim('a'), claim('a'))).toBe('b')
  expect(holder(claim('a'), claim('b', true), claim('a', true))).toBe('a')
})
