import { expect, test } from 'vitest'
import { createWindows, maxPerEndpoint, nextWindow } from '../../../../services/webhooks/dispatch/window.ts'

const answered = { answered: true, durationMs: 20 }
const silence = { answered: false, durationMs: 15_000 }
const backlog = (endpointId: string, organizationId = endpointId) => ({ endpointId, organizationId, due: 20 })
const idOf = ({ endpointId }: { endpointId: string }) => endpointId
const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)

test('an answer admits one more request at once, up to ten; no answer halves them, down to one', () => {
  const limits = [2]
  for (const end of [...Array(10).fill(answered), silence, silence, silence, silence, answered])
    limits.push(nextWindow({ limit: limits.at(-1) ?? 0, pauseMs: 0 }, end).limit)
  expect(limits).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 5, 2, 1, 1, 2])
})

test('an endpoint that answers late is slow, whatever it answers', () => {
  expect(nextWindow({ limit: 3, pauseMs: 0 }, { answered: true, durationMs: 1001 })).toMatchObject({
    isSlow: true,
  })
  expect(nextWindow({ limit: 3, pauseMs: 0 }, { answered: true, durationMs: 1000 })).toMatchObject({
    isSlow: false,
  })
})

test('room is what is not running, and comes back when a request has ended or was none', () => {
  const windows = createWindows()
  const room = () => windows.choose([backlog('a')], 200).rooms
  expect(room()).toEqual([{ endpointId: 'a', room: 2 }])
  windows.began('a')
  windows.began('a')
  expect(room()).toEqual([])
  windows.ended('a')
  expect(room()).toEqual([{ endpointId: 'a', room: 1 }])
  windows.ended('a', answered)
  expect(room()).toEqual([{ endpointId: 'a', room: 3 }])
})

test('nobody gets more room than it has due', () => {
  const windows = createWindows()
  expect(windows.choose([{ ...backlog('a'), due: 1 }], 200)).toEqual({
    rooms: [{ endpointId: 'a', room: 1 }],
    hasMore: false,
    pausedMs: Infinity,
  })
  windows.began('a')
  expect(windows.choose([{ ...backlog('a'), due: 1 }], 200)).toMatchObject({ rooms: [], hasMore: false })
  expect(windows.choose([{ ...backlog('a'), due: 3 }], 200)).toEqual({
    rooms: [{ endpointId: 'a', room: 1 }],
    hasMore: true,
    pausedMs: Infinity,
  })
})

test('no more endpoints get room than there are slots, and then the others', () => {
  const windows = createWindows()
  const chosen = () =>
    windows
      .choose(
        ['c', 'a', 'b'].map((id) => backlog(id)),
        2,
      )
      .rooms.map(idOf)
  expect([chosen(), chosen(), chosen()]).toEqual([
    ['c', 'a'],
    ['b', 'c'],
    ['a', 'b'],
  ])
})

test('endpoints that do not answer never hold more than half of the slots, however many they are', () => {
  const slots = 16
  let now = 0
  const windows = createWindows({ slots, now: () => now })
  const dead = ids('dead', 100)
  for (const id of dead) {
    windows.began(id)
    windows.ended(id, silence)
  }
  now += 1000
  const due = dead.map((id) => backlog(id))
  const first = windows.choose(due, slots).rooms
  expect(first).toEqual(dead.slice(0, 8).map((endpointId) => ({ endpointId, room: 1 })))
  for (const { endpointId } of first) windows.began(endpointId)
  expect(windows.choose([...due, backlog('new')], 8).rooms).toEqual([{ endpointId: 'new', room: 2 }])
})

test('never more than ten at once, whatever happens', () => {
  const windows = createWindows()
  const room = () => windows.choose([backlog('a')], 256).rooms[0]?.room ?? 0
  for (let i = 0; i < 50; i++) {
    const begun = room()
    expect(begun).toBeLessThanOrEqual(maxPerEndpoint)
    for (let j = 0; j < begun; j++) windows.began('a')
    expect(room()).toBe(0)
    for (let j = 0; j < begun; j++) windows.ended('a', answered)
  }
  expect(room()).toBe(10)
})

test('an endpoint that nobody answers at is left alone ever longer, up to a second, until it answers', () => {
  let now = 0
  const windows = createWindows({ now: () => now })
  const pauses: number[] = []
  for (const end of [...Array(7).fill(silence), answered, silence]) {
    windows.began('a')
    windows.ended('a', end)
    const { pausedMs, rooms, hasMore } = windows.choose([backlog('a')], 256)
    pauses.push(pausedMs)
    expect({ isPausing: rooms.length === 0, hasMore }).toEqual({ isPausing: !end.answered, hasMore: true })
    now += 1000
  }
  expect(pauses).toEqual([50, 100, 200, 400, 800, 1000, 1000, Infinity, 50])
})
