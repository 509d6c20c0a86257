import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeNotification, encodePayloads } from '../../../infra/event-store/applied.ts'

const topic = 'tidegate.organizations.v1'
const next = [
  { topic, partition: 3, offset: 42 },
  { topic, partition: 11, offset: 7 },
]

test('notifications survive a round trip', () => {
  const ids = fc.option(fc.array(fc.stringMatching(/^org_[0-9a-z]{26}$/), { maxLength: 200 }), {
    nil: undefined,
  })
  fc.assert(
    fc.property(ids, (changedIds) => {
      const payloads = encodePayloads({ projection: 'organizations', next, changedIds })
      expect(payloads.map(decodeNotification)).toEqual([
        { projection: 'organizations', next, changedIds },
      ])
    }),
  )
})

test('too many ids for a notification are sent as "any id"', () => {
  const changedIds = Array.from({ length: 500 }, (_, i) => `org_${String(i).padStart(26, '0')}`)
  const [payload = ''] = encodePayloads({ projection: 'organizations', next, changedIds })
  expect(Buffer.byteLength(payload)).toBeLessThan(8000)
  expect(decodeNotification(payload).changedIds).toBeUndefined()
})

test('many partitions and several topics are split into notifications that fit', () => {
  const many = Array.from({ length: 500 }, (_, partition) => ({
    topic,
    partition,
    offset: 1e12 + partition,
  }))
  const positions = [...many, { topic: 'other', partition: 0, offset: 1 }]
  const changedIds = Array.from({ length: 150 }, (_, i) => `org_${String(i).padStart(26, '0')}`)
  const payloads = encodePayloads({ projection: 'organizations', next: positions, changedIds })
  expect(Math.max(...payloads.map((payload) => Buffer.byteLength(payload)))).toBeLessThan(8000)
  expect(payloads.flatMap((payload) => decodeNotification(payload).next)).toEqual(positions)
})
