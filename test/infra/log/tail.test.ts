import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { LogRecord } from '../../../infra/log/port.ts'
import { createTail } from '../../../infra/log/postgres/tail.ts'

const topic = 't'
const record = (partition: number, offset: number, bytes = 1): LogRecord => ({
  topic,
  partition,
  offset,
  key: 'k',
  value: Buffer.alloc(bytes),
  headers: {},
  timestamp: offset,
})
const plenty = { records: 1000, bytes: 1_000_000 }
const offsetsOf = (records: LogRecord[] | undefined) => records?.map(({ offset }) => offset)

test('gives what was pushed from any offset on, nothing at the end, and does not know what came before', () => {
  const tail = createTail()
  tail.open([{ topic, partition: 0, offset: 5 }])
  expect(tail.push([record(0, 5), record(0, 6)])).toBe(true)
  expect(tail.push([record(0, 7)])).toBe(true)
  const read = (offset: number) => offsetsOf(tail.read({ topic, partition: 0, offset }, plenty))
  expect([read(4), read(5), read(7), read(8)]).toEqual([undefined, [5, 6, 7], [7], []])
  expect(tail.ends([topic])).toEqual([{ topic, partition: 0, offset: 8 }])
})

test('refuses records behind a gap, until it is told to go on there', () => {
  const tail = createTail()
  tail.open([{ topic, partition: 0, offset: 0 }])
  expect(tail.push([record(0, 1)])).toBe(false)
  tail.skipTo({ topic, partition: 0, offset: 1 })
  expect(tail.push([record(0, 1)])).toBe(true)
  expect(tail.read({ topic, partition: 0, offset: 0 }, plenty)).toBeUndefined()
})

test('what comes again is kept once, and partitions that are not open are not kept', () => {
  const tail = createTail()
  tail.open([{ topic, partition: 0, offset: 0 }])
  tail.push([record(0, 0), record(0, 1)])
  tail.push([record(0, 1), record(0, 2)])
  tail.push([record(9, 0)])
  expect(offsetsOf(tail.read({ topic, partition: 0, offset: 0 }, plenty))).toEqual([0, 1, 2])
  expect(tail.read({ topic, partition: 9, offset: 0 }, plenty)).toBeUndefined()
})

test('gives one record at least, and no more than the limits', () => {
  const tail = createTail()
  tail.open([{ topic, partition: 0, offset: 0 }])
  tail.push([record(0, 0, 100), record(0, 1, 100), record(0, 2, 100)])
  const read = (records: number, bytes: number) =>
    offsetsOf(tail.read({ topic, partition: 0, offset: 0 }, { records, bytes }))
  expect([read(2, 1000), read(9, 250), read(9, 1)]).toEqual([[0, 1], [0, 1], [0]])
})

test('whatever is forgotten for want of room, what is left has no gap', () => {
  const pushes = fc.array(
    fc.record({ partition: fc.nat(2), count: fc.integer({ min: 1, max: 9 }) }),
    {
      minLength: 1,
    },
  )
  fc.assert(
    fc.property(pushes, fc.integer({ min: 1, max: 30 }), (some, maxBytes) => {
      const tail = createTail({ maxBytes })
      const ends = [0, 0, 0]
      tail.open(ends.map((offset, partition) => ({ topic, partition, offset })))
      for (const { partition, count } of some) {
        const start = ends[partition] ?? 0
        tail.push(Array.from({ length: count }, (_, i) => record(partition, start + i)))
        ends[partition] = start + count
      }
      let kept = 0
      for (const [partition, end] of ends.entries()) {
        const known = Array.from({ length: end }, (_, offset) =>
          tail.read({ topic, partition, offset }, plenty),
        )
        const first = known.findIndex((records) => records !== undefined)
        if (first < 0) continue
        kept += end - first
        const expected = Array.from({ length: end - first }, (_, i) => first + i)
        expect(offsetsOf(known[first])).toEqual(expected)
      }
      expect(kept).toBeLessThanOrEqual(maxBytes)
    }),
  )
})
