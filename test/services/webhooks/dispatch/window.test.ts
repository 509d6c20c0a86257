import { expect, test } from 'vitest'
import { createWindows, maxPerEndpoint, nextWindow } from '../../../../services/webhooks/dispatch/window.ts'

const answered = { answered: true, durationMs: 20 }
const silence = { answered: false, durationMs: 15_000 }
const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)

test('an answer admits one more request at once, up to ten; no answer halves them, down to one', () => {
  const limits = [2]
  for (const end of [...Array(10).fill(answered), silence, silence, silence, silence, answered])
    limits.push(nextWindow({ limit: limits.at(-1) ?? 0 }, end).limit)
  expect(limits).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 5, 2, 1, 1, 2])
})

test('an endpoint that answers late is slow, whatever it answers', () => {
  expect(nextWindow({ limit: 3 }, { answered: true, durationMs: 1001 })).toEqual({ limit: 4, isSlow: true })
  expect(nextWindow({ limit: 3 }, { answered: true, durationMs: 1000 })).toEqual({ limit: 4, isSlow: false })
})

test('room is what is not running, and comes back when a request has ended or was none', () => {
  const windows = createWindows()
  expect(windows.choose(['a'], 10)).toEqual([{ endpointId: 'a', room: 2 }])
  windows.began('a')
  windows.began('a')
  expect(windows.choose(['a'], 10)).toEqual([])
  windows.ended('a')
  expect(windows.choose(['a'], 10)).toEqual([{ endpointId: 'a', room: 1 }])
  windows.ended('a', answered)
  expect(windows.choose(['a'], 10)).toEqual([{ endpointId: 'a', room: 3 }])
})

test('no more endpoints get room than there are slots, in the order given', () => {
  const windows = createWindows()
  expect(windows.choose(['c', 'a', 'b'], 2).map(({ endpointId }) => endpointId)).toEqual(['c', 'a'])
})

test('endpoints that do not answer never hold more than half of the slots, however many they are', () => {
  const slots = 16
  const windows = createWindows(slots)
  const dead = ids('dead', 100)
  for (const id of dead) {
    windows.began(id)
    windows.ended(id, silence)
  }
  const first = windows.choose(dead, slots)
  expect(first).toEqual(dead.slice(0, 8).map((endpointId) => ({ endpointId, room: 1 })))
  for (const { endpointId } of first) windows.began(endpointId)
  expect(windows.choose([...dead, 'new'], 8)).toEqual([{ endpointId: 'new', room: 2 }])
})

test('never more than ten at once, whatever happens', () => {
  const windows = createWindows()
  for (let i = 0; i < 50; i++) {
    const [{ room } = { room: 0 }] = windows.choose(['a'], 256)
    expect(room).toBeLessThanOrEqual(maxPerEndpoint)
    for (let j = 0; j < room; j++) windows.began('a')
    expect(windows.choose(['a'], 256)).toEqual([])
    for (let j = 0; j < room; j++) windows.ended('a', answered)
  }
  expect(windows.choose(['a'], 256)).toEqual([{ endpointId: 'a', room: 10 }])
})
