import { createRequire } from 'node:module'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  encodeRecord,
  type RecordParts,
  useFastRecordEncoder,
} from '../../../infra/log/kafka/client.ts'

const require = createRequire(import.meta.url)
const modulePath = 'kafkajs/src/protocol/recordBatch/record/v0'
// Before it is replaced.
const theirs: (parts: RecordParts) => { buffer: Buffer } = require(modulePath)

const text = fc.string({ unit: 'grapheme', maxLength: 200 })
const bytes = fc.uint8Array({ maxLength: 3000 }).map((array) => Buffer.from(array))

test("makes the same bytes as kafkajs's own encoder", () => {
  const records = fc.record({
    offsetDelta: fc.nat({ max: 100_000 }),
    timestampDelta: fc.oneof(
      fc.nat({ max: 2 ** 31 - 1 }),
      fc.maxSafeNat().map((n) => n % 2 ** 45),
    ),
    key: fc.oneof(text, bytes, fc.constant(null)),
    value: fc.oneof(text, bytes, fc.constant(null)),
    headers: fc.dictionary(text, text, { maxKeys: 8, noNullPrototype: true }),
  })
  fc.assert(
    fc.property(records, (record) => {
      expect(encodeRecord(record).buffer.equals(theirs(record).buffer)).toBe(true)
    }),
  )
})

test('takes its place', () => {
  useFastRecordEncoder()
  expect(require(modulePath)).toBe(encodeRecord)
})
