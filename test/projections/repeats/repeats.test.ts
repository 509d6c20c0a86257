import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type DomainEvent,
  partitionKeyOf,
  type RecordedEvent,
} from '../../../infra/event-store/event.ts'
import { maxCount } from '../../../projections/repeats/counted-sessions.ts'
import { createRepeatCounter } from '../../../projections/repeats/queries.ts'
import { windows } from '../../../projections/repeats/tables.ts'
import { expectOrderIsNothing, fastCheckSettings } from '../../support/bad-delivery.ts'
import { visitorErased } from '../../support/erased.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { useReadModel } from '../read-model.ts'
import {
  askedAbout,
  attached,
  cleared,
  opened,
  recorded,
  repeatsProjection,
  start,
  topic,
} from './events.ts'
import { countedByHand, type ModelSession } from './model.ts'

const world = await useReadModel(repeatsProjection, (event) => recorded(event))
const count = createRepeatCounter()
async function countOne(asked: Parameters<typeof askedAbout>[0]) {
  const [counted] = await count(world.pool, [askedAbout(asked)])
  if (!counted) throw new Error('nothing was counted')
  return counted.repeats
}
const all = (number: number) => ({ five_minutes: number, hour: number, day: number })

/** Returns counts that are all equal, except those of users. */
const each = (number: number) => ({
  address_sessions: all(number),
  network_sessions: all(number),
  visitor_sessions: all(number),
  snapshot_sessions: all(number),
  behavior_sessions: all(number),
  address_visitors: all(number),
  visitor_addresses: all(number),
  visitor_users: all(0),
  user_visitors: all(0),
})

test('a session counts itself, and none of other organizations or environments', async () => {
  await world.given(
    opened({ session: 1, organization: 2 }),
    opened({ session: 2, environment: 'test' }),
  )
  expect(await countOne({ session: 3 })).toEqual(each(1))
})

test('unknown values are not counted', async () => {
  const nothing = { ip: '', visitor: null, snapshot: null, behavior: null }
  await world.given(opened({ session: 1, ...nothing }))
  expect(await countOne({ session: 2, ...nothing })).toEqual(each(0))
})

test('windows end at the time of the decision', async () => {
  const at = start + 2 * windows.day
  await world.given(
    opened({ session: 1, at: at - windows.day }),
    opened({ session: 2, at: at - windows.day + 1 }),
    opened({ session: 3, at: at - windows.hour + 1 }),
    opened({ session: 4, at: at - windows.five_minutes + 1 }),
    opened({ session: 5, at }),
    opened({ session: 6, at: at + 1 }),
  )
  const { address_sessions } = await countOne({ session: 9, at })
  expect(address_sessions).toEqual({ five_minutes: 3, hour: 4, day: 5 })
})

test('networks are IPv4 /24 and IPv6 /48; an IPv6 /64 counts as one address', async () => {
  await world.given(
    opened({ session: 1, ip: '203.0.113.7' }),
    opened({ session: 2, ip: '2001:db8:1:2::1' }),
  )
  expect(await countOne({ session: 3, ip: '::ffff:203.0.113.9' })).toMatchObject({
    address_sessions: all(1),
    network_sessions: all(2),
    visitor_addresses: all(3),
  })
  expect(await countOne({ session: 4, ip: '2001:db8:1:2::9' })).toMatchObject({
    address_sessions: all(2),
  })
  expect(await countOne({ session: 4, ip: '2001:db8:1:3::9' })).toMatchObject({
    address_sessions: all(1),
    network_sessions: all(2),
  })
})

test('users of a visitor and visitors of a user are counted as users are attached and cleared', async () => {
  await world.given(
    opened({ session: 1 }),
    attached({ session: 1, user: 'ann', at: start + 1 }),
    opened({ session: 2 }),
    attached({ session: 2, user: 'bob', at: start + 1 }),
    opened({ session: 3, visitor: 2 }),
    attached({ session: 3, user: 'ann', at: start + 1 }),
  )
  expect(await countOne({ session: 1 })).toMatchObject({
    visitor_users: all(2),
    user_visitors: all(2),
  })
  expect(await countOne({ session: 9 })).toMatchObject({
    visitor_users: all(2),
    user_visitors: all(0),
  })
  await world.given(cleared({ session: 3, at: start + 2 }))
  expect(await countOne({ session: 1 })).toMatchObject({
    visitor_users: all(2),
    user_visitors: all(1),
  })
})

test('a later decision replaces the keys of an earlier one, and a repeated event changes nothing', async () => {
  const first = opened({ session: 1, behavior: null, observed: start + 1 })
  await world.given(first, opened({ session: 1, behavior: 5, observed: start + 2 }), first)
  await world.given(first)
  expect(await countOne({ session: 2, behavior: 5 })).toMatchObject({ behavior_sessions: all(2) })
  expect(await world.rows('repeats')).toHaveLength(1)
})

test('sessions of a call that are not in the read model yet count each other', async () => {
  await world.given(opened({ session: 1, behavior: null }))
  const asked = [1, 2, 3].map((session) => askedAbout({ session, behavior: 7, visitor: session }))
  const counted = await count(world.pool, [
    ...asked,
    askedAbout({ session: 2, behavior: 7, visitor: 2 }),
  ])
  for (const one of counted)
    expect(one?.repeats).toMatchObject({
      behavior_sessions: all(3),
      address_sessions: all(3),
      visitor_sessions: all(1),
    })
})

test('counts stop at the limit', async () => {
  await world.given(
    ...Array.from({ length: maxCount + 20 }, (_, n) =>
      opened({ session: n, visitor: n, at: start + n }),
    ),
  )
  const { address_sessions, address_visitors } = await countOne({ session: 1000, at: start + 5000 })
  expect(address_sessions).toEqual(all(maxCount))
  expect(address_visitors).toEqual(all(maxCount))
})

test('rows expire once their partition has a session that is more than a day newer', async () => {
  const kept = async () =>
    (await world.rows('repeats')).map(({ session_id }) => session_id).toSorted()
  await world.given(opened({ session: 1 }), opened({ session: 2, at: start + 1 }))
  await world.given(opened({ session: 3, at: start + windows.day + 1 }), opened({ session: 4 }))
  expect(await kept()).toEqual([2, 3].map((session) => askedAbout({ session }).session_id))
  await world.apply([recorded(opened({ session: 5 }), { partition: 1 })])
  expect(await kept()).toHaveLength(3)
})

test('after a long pause all rows expire at once, however many there are', async () => {
  await world.given(
    ...Array.from({ length: 5001 }, (_, n) => opened({ session: n, at: start + n })),
  )
  await world.given(opened({ session: 20_000, at: start + 3 * windows.day }))
  expect(await world.rows('repeats')).toHaveLength(1)
})

test('without a read model, nothing is counted and nothing fails', async () => {
  const database = await createTestDatabase()
  await database.pool.query('drop schema read cascade')
  expect(await createRepeatCounter()(database.pool, [askedAbout({ session: 1 })])).toEqual([null])
  await database.drop()
})

const session = fc.record<ModelSession>({
  session: fc.nat(12),
  visitor: fc.option(fc.nat(2)),
  behavior: fc.option(fc.nat(2)),
  ip: fc.constantFrom('203.0.113.1', '203.0.113.2', '198.51.100.1', ''),
  user: fc.option(fc.constantFrom('ann', 'bob')),
  minutes: fc.nat(24 * 60),
})

test('counts equal those of a simple model', async () => {
  const sessions = fc.uniqueArray(session, { selector: (one) => one.session, maxLength: 12 })
  const property = fc.asyncProperty(sessions, session, async (others, mine) => {
    await world.pool.query('truncate repeats_b1.repeats')
    const known = others.filter((one) => one.session !== mine.session)
    await world.given(...known.flatMap(eventsOf), ...(mine.user ? eventsOf(mine) : []))
    const at = start + mine.minutes * 60_000
    expect(await countOne({ ...mine, at })).toEqual(countedByHand(known, mine))
  })
  await fc.assert(property, fastCheckSettings(40))
}, 60_000)

function eventsOf(one: ModelSession): DomainEvent[] {
  const at = start + one.minutes * 60_000
  const first = opened({ ...one, at })
  return one.user
    ? [first, attached({ session: one.session, user: one.user, at: at + 1 })]
    : [first]
}

interface Step {
  session: number
  behavior: number | null
  kind: 'scored' | 'attached' | 'cleared' | 'erased'
}

/** Sessions are opened six hours apart, so that the first expire. */
function partitionsOf(steps: Step[]): RecordedEvent[][] {
  const [log, erasures]: [RecordedEvent[][], RecordedEvent[]] = [[[], [], []], []]
  const known = new Set<number>()
  steps.forEach(({ session, behavior, kind }, n) => {
    if (kind === 'erased') {
      const data = visitorErased([partitionKeyOf(opened({ session, at: 0 }))], {
        event_id: `evt_erased_${n}`,
      })
      erasures.push(
        recorded({ type: 'VisitorErased', data }, { partition: log.length, offset: n * 10 }),
      )
      return
    }
    if (kind !== 'scored' && !known.has(session)) return
    known.add(session)
    const at = start + session * 6 * windows.hour
    const observed = at + n
    const event = {
      scored: opened({ session, behavior, at, observed }),
      attached: attached({ session, user: `user ${n}`, at: observed }),
      cleared: cleared({ session, at: observed }),
    }[kind]
    const partition = session % log.length
    log[partition]?.push(recorded(event, { partition, offset: n * 10 }))
  })
  return [...log, erasures]
}

test('events repeated, redelivered and reordered across partitions change nothing', async () => {
  const step = fc.record<Step>({
    session: fc.nat(20),
    behavior: fc.option(fc.nat(2)),
    kind: fc.constantFrom('scored', 'scored', 'scored', 'attached', 'cleared', 'erased'),
  })
  const logs = fc.array(step, { minLength: 1, maxLength: 60, size: 'max' })
  const scratch = { pool: () => world.pool, projection: repeatsProjection, topic, partitions: 4 }
  await expectOrderIsNothing({ ...scratch, logs, partitionsOf, maxSize: 6, runs: 15 })
}, 60_000)
