import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { generateDeliveryKeys } from '../../../../infra/wire/delivery-envelope.ts'
import { generateConfirmationCode } from '../../../../infra/wire/gate.ts'
import { checkedSignupFields } from '../../../../services/gate/signup/schemas.ts'
import { refusal } from '../../organizations/fixtures.ts'

const { delivery } = generateDeliveryKeys()
const good = { account_name: 'Robin', delivery }

test('a name is trimmed and measured in characters', () => {
  const named = checkedSignupFields({ ...good, account_name: `  ${'🐙'.repeat(100)} ` })
  expect(named).toMatchObject({ account_name: '🐙'.repeat(100), metadata: null })
})

test('metadata is kept as the agent wrote it', () => {
  const metadata = { plan: 'free', n: 1 }
  expect(checkedSignupFields({ ...good, metadata }).metadata).toBe('{"plan":"free","n":1}')
})

const deep = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)
const otherKey = generateDeliveryKeys().delivery.key_id
const delivered = (changes: Partial<typeof delivery>) => ({ delivery: { ...delivery, ...changes } })
const name = (account_name: string) => ({ account_name })

test.each([
  ['an empty name', name(''), 'account_name invalid'],
  ['a blank name', name(' \u200b\t '), 'account_name invalid'],
  ['a long name', name('a'.repeat(101)), 'account_name invalid'],
  ['a name with two lines', name('two\nlines'), 'account_name invalid'],
  ['a name with control characters', name('nul\u0000'), 'account_name invalid'],
  ['a name that changes the text direction', name('\u202eevil'), 'account_name invalid'],
  ['a lone surrogate', name('\ud800'), 'account_name invalid'],
  [
    'more than five members',
    { metadata: Object.fromEntries([...'abcdef'].map((key) => [key, 1])) },
    'metadata too_large',
  ],
  ['more than 4 KB', { metadata: { a: 'é'.repeat(2100) } }, 'metadata too_large'],
  ['deep nesting', { metadata: deep(9) }, 'metadata invalid'],
  [
    'a number beyond double precision',
    { metadata: { n: Number.POSITIVE_INFINITY } },
    'metadata invalid',
  ],
  ['the id of another key', delivered({ key_id: otherKey }), 'delivery.key_id mismatch'],
  [
    'a key of low order',
    delivered({ public_key: Buffer.alloc(32).toString('base64url') }),
    'delivery.public_key invalid',
  ],
  ['a malformed key', delivered({ public_key: 'AAAA' }), 'delivery.public_key invalid'],
])('a signup is rejected for %s', (_what, changes, expected) => {
  const { code, details } = refusal(() => checkedSignupFields({ ...good, ...changes }))
  const [field] = details?.fields ?? []
  expect([code, `${field?.name} ${field?.issue}`]).toEqual(['gate.validation_failed', expected])
})

test('metadata can be nested eight levels deep', () => {
  expect(checkedSignupFields({ ...good, metadata: deep(8) }).metadata).toBe(JSON.stringify(deep(8)))
})

test('confirmation codes are random and independent of the session id', () => {
  const codes = Array.from({ length: 100 }, () => generateConfirmationCode(randomBytes))
  for (const code of codes) expect(code).toMatch(/^[0-9A-HJKMNP-TV-Z]{2}-[0-9A-HJKMNP-TV-Z]{3}$/)
  expect(new Set(codes).size).toBeGreaterThan(95)
})
