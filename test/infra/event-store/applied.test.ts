import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeNotification, encodeNotifications } from '../../../infra/event-store/applied.ts'

const topic = 'tidegate.organizations.v1'
const next = [
  { topic, partition: 3, offset: 42 },
  { topic, partition: 11, offset: 7 },
]

test('news are read as they were written', () => {
  const ids = fc.option(fc.array(fc.stringMatching(/^org_[0-9a-z]{26}$/), { maxLength: 200 }), {
    nil: undefined,
  })
  fc.assert(
    fc.property(ids, (subjects) => {
      const payloads = encodeNotifications({ projection: 'organizations', next, subjects })
      expect(payloads.map(decodeNotification)).toEqual([
        { projection: 'organizations', next, subjects },
      ])
    }),
  )
})

test('what does not fit into a notification is news of anything', () => {
  const subjects = Array.from({ length: 500 }, (_, i) => `org_${String(i).padStart(26, '0')}`)
  const [payload = ''] = encodeNotifications({ projection: 'organizations', next, subjects })
  expect(Buffer.byteLength(payload)).toBeLessThan(8000)
  expect(decodeNotification(payload).subjects).toBeUndefined()
})

test('very many partitions, and several topics, are several notifications that fit', () => {
  const many = Array.from({ length: 500 }, (_, partition) => ({
    topic,
    partition,
    offset: 1e12 + partition,
  }))
  const positions = [...many, { topic: 'other', partition: 0, offset: 1 }]
  const subjects = Array.from({ length: 150 }, (_, i) => `org_${String(i).padStart(26, '0')}`)
  const payloads = encodeNotifications({ projection: 'organizations', next: positions, subjects })
  expect(Math.max(...payloads.map((payload) => Buffer.byteLength(payload)))).toBeLessThan(8000)
  expect(payloads.flatMap((payload) => decodeNotification(payload).next)).toEqual(positions)
})
