import { describe, expect, test } from 'vitest'
import type { GateServiceDefinition } from '../../../../schemas/events.ts'
import { refuseForbiddenValues } from '../../../../services/gate/registry/forbidden.ts'
import { refusal } from '../../organizations/fixtures.ts'
import { definition } from '../fixtures.ts'

// Escaped, because look-alike letters cannot be told apart.

const rules = { parameterSet: 'gate_service_update' } as const

type Claims = Parameters<typeof refuseForbiddenValues>[0]
type Known = Partial<Parameters<typeof refuseForbiddenValues>[1]>

/** Returns `field issue` of the error; undefined if there is none. */
function problemOf(claims: Claims, known: Known = {}): string | undefined {
  try {
    refuseForbiddenValues(claims, { ...rules, ...known })
    return undefined
  } catch {
    const { details } = refusal(() => refuseForbiddenValues(claims, { ...rules, ...known }))
    return details?.fields?.map(({ name, issue }) => `${name} ${issue}`).join()
  }
}

const labelled = (name: string): Claims => ({ env_vars: [{ name, key: 'ACME_KEY', secret: true }] })

test.each([
  ['is Latin', ['Acme Mail', 'AT&T', 'C++ Cloud', 'Café Zürich', 'Łódź Pay', '1Password', 'Tidal']],
  ['has symbols', ['Acme™', 'I ♥ Mail']],
  [
    'is in another script',
    ['Яндекс', 'Ελληνική', 'بريد', 'דואר', 'डाक', 'ไปรษณีย์', '株式会社メール'],
  ],
  ['mixes scripts that are written together', ['NTTドコモ', '네이버 Pay', '微信 Pay']],
])('a name that %s is in one script', (_what, names) => {
  for (const name of names) expect(problemOf({ name }), name).toBeUndefined()
})

test.each(['Acme Maiⅼ Τ', 'Αcme', 'Pаypal', 'Яndex', 'Acme Почта', 'ドコモ 네이버'])(
  '%s mixes scripts',
  (name) => expect(problemOf({ name })).toBe('name invalid'),
)

test.each([
  'Tidegate',
  'TIDEGATE Mail',
  'tide-gate',
  'TlDEGATE', // a small L
  'T1degate',
  'Tide\u00ADgate', // a soft hyphen, which is rejected as invisible
  'Tidegat\u00e9',
  't i d e g a t e',
  '\u1d1b\u026a\u1d05\u1d07\u0262\u1d00\u1d1b\u1d07', // small capitals
  '\u{1f183}\u{1f178}\u{1f173}\u{1f174}\u{1f176}\u{1f170}\u{1f183}\u{1f174}', // in squares
  '\u{1d4e3}\u{1d4f2}\u{1d4ed}\u{1d4ee}\u{1d4f0}\u{1d4ea}\u{1d4fd}\u{1d4ee}', // mathematical script
  '\uff34idegate Mail',
])('%s looks like Tidegate, however it is written', (name) =>
  expect(problemOf({ name })).toMatch(/^name (not_allowed|invalid)$/),
)

describe('a name that looks like a verified service of another organization', () => {
  const verifiedNames = ['Harbour Mail', 'NTT ドコモ']
  test.each([
    'Harbour Mail',
    'harbour-mail',
    'HARBOUR MAlL',
    'Harb0ur Mai1',
    'Harbour M\u00e1il',
    'NTTドコモ',
  ])('%s is rejected', (name) =>
    expect(problemOf({ name }, { verifiedNames })).toBe('name not_allowed'),
  )
  test.each(['Harbour', 'Harbour Mailing', 'NTTトコモ'])('%s is accepted', (name) =>
    expect(problemOf({ name }, { verifiedNames })).toBeUndefined(),
  )
})

describe('a well-known name', () => {
  test.each([
    'GitHub',
    'G1thub Copilot',
    'Sign in with Google',
    'Pay Pal',
    'PayPalSupport',
    'Stripe Payments',
    'Slack',
  ])('%s is rejected', (name) => expect(problemOf({ name })).toBe('name not_allowed'))
  test.each(['Open Air Cinema', 'Blue Stripe', 'Metabase', 'Linearity', 'Zoomies', 'Pineapple'])(
    '%s is accepted',
    (name) => expect(problemOf({ name })).toBeUndefined(),
  )
  test('is accepted for a service with a verified domain of its owner', () => {
    expect(problemOf({ name: 'GitHub' }, { verifiedDomain: 'github.com' })).toBeUndefined()
    expect(problemOf({ name: 'GitHub' }, { verifiedDomain: 'github.example' })).toBe(
      'name not_allowed',
    )
  })
})

test.each([
  'Verified',
  'Acme (verified)',
  'V\u0435rified', // a Cyrillic e
  'VERlFlED',
  'Verif1ed',
  'v e r i f i e d',
  'Official Acme',
  '0fficial',
  'UnverifiedCo',
])('%s is rejected as a name and as the display name of a variable', (text) => {
  expect(problemOf({ name: text })).toMatch(/^name (not_allowed|invalid)$/)
  expect(problemOf(labelled(text))).toBe('env_vars.0.name not_allowed')
  expect(problemOf({ description: text })).toBeUndefined()
})

test.each([
  '\u2713',
  '\u2714\ufe0f',
  '\u2705',
  '\u2611',
  '\u221a',
  '\u{1f6e1}\ufe0f',
  '\u26e8',
  '\u{1f5f9}',
  '\u{1fbb1}',
])('the mark %s is rejected in every text', (mark) => {
  const text = `Acme ${mark}`
  expect(problemOf({ name: text })).toBe('name not_allowed')
  expect(problemOf(labelled(text))).toBe('env_vars.0.name not_allowed')
  expect(problemOf({ description: `Mail.\n${text}` })).toBe('description not_allowed')
  expect(problemOf({ branding: { ascii_art: text } })).toBe('branding.ascii_art not_allowed')
})

test.each([
  'Ac\u200bme',
  'Ac\u200dme',
  'Ac\u00adme',
  'Ac\u2060me',
  'Acme\u3164',
  'Acme\u{e0041}',
  'Acme\ufe0f',
  'Acme\u2800',
  'Acme\u034f',
])('a name with invisible characters is rejected: %j', (text) => {
  expect(problemOf({ name: text })).toBe('name invalid')
  expect(problemOf(labelled(text))).toBe('env_vars.0.name invalid')
  expect(problemOf({ description: text })).toBe('description invalid')
})
test.each([
  'I \u2764\ufe0f Mail',
  '\u{1f469}\u200d\u{1f4bb} Works',
  '\u{1f44b}\u{1f3fd} Hi',
  '\u0dc1\u0dca\u200d\u0dbb\u0dd3', // Sinhala: Sri
  '\u0646\u0627\u0645\u0647\u200c\u0647\u0627', // Persian: letters
])('a name is accepted as it is written: %j', (text) =>
  expect(problemOf({ name: text })).toBeUndefined(),
)

test.each([
  'A\u0323\u0302cme',
  'Vi\u1ec7t',
  'Vie\u0323\u0302t',
  '\u0e17\u0e35\u0e48',
  '\u1000\u103c\u102d\u102f\u1037',
])('combining marks in %j are accepted', (text) =>
  expect(problemOf({ name: text, description: text })).toBeUndefined(),
)
test.each(['Acm\u0337\u0338\u0335e', 'A\u0300\u0301\u0302\u0303', '\u0e01\u0e47\u0e47\u0e47'])(
  'combining marks in %j are rejected',
  (text) => {
    expect(problemOf({ name: text })).toBe('name invalid')
    expect(problemOf({ description: text })).toBe('description invalid')
    expect(problemOf(labelled(text))).toBe('env_vars.0.name invalid')
  },
)

test('registered values stay allowed, and new forbidden values are rejected beside them', () => {
  const registered: GateServiceDefinition = {
    ...definition,
    name: 'Official Acme',
    description: 'Mail \u2713',
    env_vars: [{ name: 'Verified key', key: 'ACME_BASE_URL', secret: true }],
    branding: { ...definition.branding, ascii_art: '\u2705' },
  }
  expect(problemOf(registered, { registered })).toBeUndefined()
  const more = {
    ...registered,
    env_vars: [...registered.env_vars, { name: 'Official', key: 'B_HOME', secret: true }],
  }
  expect(problemOf(more, { registered })).toBe(
    'env_vars.1.key not_allowed,env_vars.1.name not_allowed',
  )
  expect(problemOf({ name: 'Official Acme 2' }, { registered })).toBe('name not_allowed')
})

test('a variable that steers programs is allowed only under the verified prefix', () => {
  const env_vars = [{ name: 'Address', key: 'ACME_BASE_URL', secret: false }]
  expect(problemOf({ env_vars })).toBe('env_vars.0.key not_allowed')
  expect(problemOf({ env_vars }, { prefix: 'OTHER_' })).toBe('env_vars.0.key not_allowed')
  expect(problemOf({ env_vars }, { prefix: 'ACME_' })).toBeUndefined()
})
