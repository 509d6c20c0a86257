import { expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import {
  findDueGateSessions,
  findGateSession,
  findUnleasedApprovals,
} from '../../../projections/gate/queries.ts'
import { day, events, gate, minute, start, useGateWorld } from './events.ts'

const world = await useGateWorld()

/** Returns events of the signup or login `n`, one millisecond apart. */
const story = (n: number, ...kinds: (keyof typeof events)[]): DomainEvent[] =>
  kinds.map((kind, step) => events[kind](n, start + step))

test('a delivery is stored until it is acknowledged', async () => {
  await world.given(...story(1, 'opened', 'started', 'approved'))
  const find = () => findGateSession(world.pool, gate(1))
  const delivery_sealed = Buffer.from([0, 255, 1])
  expect(await find()).toMatchObject({ metadata: '{"a":"\\u0000"}', delivery_sealed })
  await world.given(...story(1, 'acknowledged'))
  expect(await find()).toMatchObject({ delivery: 'acknowledged', delivery_sealed: null })
})

test('returns due sessions, up to the limit', async () => {
  await world.given(
    ...story(1, 'opened'),
    ...story(2, 'opened'),
    // A started approval is pending, too, but is ended by its outcome.
    ...story(3, 'opened', 'started'),
    ...story(4, 'opened', 'started', 'approved'),
    ...story(5, 'opened', 'started', 'approved', 'acknowledged'),
    ...story(6, 'loginOpened', 'loginApproved'),
    ...story(7, 'loginOpened', 'loginApproved', 'codeConsumed'),
  )
  const due = async (what: Parameters<typeof findDueGateSessions>[1], now: number, limit = 100) =>
    (await findDueGateSessions(world.pool, what, { now: start + now, limit })).toSorted()
  expect(await due('sessions', 15 * minute)).toEqual([gate(1), gate(2)])
  expect(await due('sessions', 15 * minute, 1)).toHaveLength(1)
  expect(await due('sessions', 15 * minute - 1)).toEqual([])
  expect(await due('codes', 1 + 5 * minute)).toEqual([gate(6)])
  expect(await due('codes', 5 * minute)).toEqual([])
  expect(await due('deliveries', 2 + day)).toEqual([gate(4)])
  expect(await due('deliveries', 1 + day)).toEqual([])
})

test('returns approvals without a lease, round-robin by organization', async () => {
  const started = [1, 2, 3, 4, 5].map(gate)
  for (const n of [1, 2, 3, 4, 5]) await world.given(...story(n, 'opened', 'started'))
  await world.given(...story(6, 'opened'))
  const free = async (maxPerOrganization = 100, limit = 100) =>
    (await findUnleasedApprovals(world.pool, { maxPerOrganization, limit })).map(({ id }) => id)
  expect((await free()).toSorted()).toEqual(started)
  expect(await free(2)).toEqual((await free()).slice(0, 2))
  expect(await free(100, 3)).toEqual((await free()).slice(0, 3))
  await world.pool.query(
    `insert into tidegate.gate_leases values ($1, 'one', extract(epoch from clock_timestamp()) * 1000 + 60000),
     ($2, 'killed', extract(epoch from clock_timestamp()) * 1000 - 1)`,
    started.slice(0, 2),
  )
  expect((await free()).toSorted()).toEqual(started.slice(1))
})
