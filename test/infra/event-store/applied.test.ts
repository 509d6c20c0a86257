import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeNotification, encodeNotification } from '../../../infra/event-store/applied.ts'

const next = { topic: 'tidegate.organizations.v1', partition: 3, offset: 42 }

test('news are read as they were written', () => {
  const ids = fc.option(fc.array(fc.stringMatching(/^org_[0-9a-z]{26}$/), { maxLength: 200 }), {
    nil: undefined,
  })
  fc.assert(
    fc.property(ids, (subjects) => {
      expect(decodeNotification(encodeNotification({ projection: 'organizations', next, subjects }))).toEqual(
        {
          projection: 'organizations',
          next,
          subjects,
        },
      )
    }),
  )
})

test('what does not fit into a notification is news of anything', () => {
  const subjects = Array.from({ length: 500 }, (_, i) => `org_${String(i).padStart(26, '0')}`)
  const payload = encodeNotification({ projection: 'organizations', next, subjects })
  expect(Buffer.byteLength(payload)).toBeLessThan(8000)
  expect(decodeNotification(payload).subjects).toBeUndefined()
})
