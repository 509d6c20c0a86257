import { createRequire } from 'node:module'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  encodeRecord,
  patchRecordEncoder,
  type RecordParts,
} from '../../../infra/log/kafka/client.ts'

const require = createRequire(import.meta.url)
const modulePath = 'kafkajs/src/protocol/recordBatch/record/v0'
// Loaded before it is replaced.
const originalEncoder: (parts: RecordParts) => { buffer: Buffer } = require(modulePath)

const text = fc.string({ unit: 'grapheme', maxLength: 200 })
const bytes = fc.uint8Array({ maxLength: 3000 }).map((array) => Buffer.from(array))

test("returns the same bytes as kafkajs's own encoder", () => {
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
      expect(encodeRecord(record).buffer.equals(originalEncoder(record).buffer)).toBe(true)
    }),
  )
})

test('replaces the encoder of kafkajs', () => {
  patchRecordEncoder()
  expect(require(modulePath)).toBe(encodeRecord)
})
