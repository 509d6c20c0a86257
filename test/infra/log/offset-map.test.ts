import { describe, expect, test } from 'vitest'
import { createOffsetMap } from '../../../infra/log/copy/offset-map.ts'

const at = (offset: number, partition = 0) => ({ topic: 'topic', partition, offset })

describe('a copy of records 5, 6, 7 and 10, 11, whose others had expired', () => {
  const offsets = createOffsetMap([at(0)], { isEqual: false })
  for (const [i, offset] of [5, 6, 7, 10, 11].entries()) offsets.add(at(offset), at(i))

  test('has each of them at its own place, and none of the others', () => {
    const all = Array.from({ length: 13 }, (_, offset) => offsets.ofRecord(at(offset)))
    const gone = undefined
    expect(all).toEqual([gone, gone, gone, gone, gone, 0, 1, 2, gone, gone, 3, 4, gone])
  })

  test('is read on at the first record that was not read before', () => {
    expect([0, 5, 7, 8, 9, 10, 12].map((offset) => offsets.ofNext(at(offset)))).toEqual([
      0, 0, 2, 3, 3, 3, 5,
    ])
  })

  test('goes on behind the last', () => expect(offsets.nextInSource(0)).toBe(12))
})

test('a copy without records is read on at its end', () => {
  const offsets = createOffsetMap([at(40)], { isEqual: false })
  expect([offsets.ofNext(at(7)), offsets.ofRecord(at(7)), offsets.nextInSource(0)]).toEqual([
    40,
    undefined,
    0,
  ])
})

test('a copy at equal offsets goes on at its end', () => {
  const offsets = createOffsetMap([at(3), at(0, 1)], { isEqual: true })
  offsets.add(at(3), at(3))
  expect([offsets.nextInSource(0), offsets.ofNext(at(2)), offsets.nextInSource(1)]).toEqual([
    4, 2, 0,
  ])
})
