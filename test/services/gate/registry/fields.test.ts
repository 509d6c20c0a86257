import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Environment } from '../../../../schemas/events.ts'
import {
  checkedNewDefinition,
  checkedServiceFields,
} from '../../../../services/gate/registry/definition.ts'
import {
  checkedServiceId,
  isServiceId,
  serviceDefaults,
} from '../../../../services/gate/registry/fields.ts'
import type { ServiceFields } from '../../../../services/gate/registry/schemas.ts'
import { refusal } from '../../organizations/fixtures.ts'

const minimal = {
  name: ' Acme Mail ',
  description: 'Mail.\r\nFor agents.\n',
  website: 'https://acme.example',
  webhook_endpoint_id: 'we_1',
}
const rules = { environment: 'live', parameterSet: 'gate_service_update' } as const

const checked = (fields: ServiceFields, environment: Environment = 'live') =>
  checkedServiceFields(fields, { ...rules, environment })

/** Returns `field issue` of the error. */
function problemOf(work: () => unknown): string {
  const { code, details } = refusal(work)
  expect([code, details?.parameter_set]).toEqual(['gate.validation_failed', 'gate_service_update'])
  const [field] = details?.fields ?? []
  expect(field).not.toHaveProperty('received')
  return `${field?.name} ${field?.issue}`
}
const problemWith = (fields: ServiceFields, environment?: Environment) =>
  problemOf(() => checked(fields, environment))

test('a new service has the normalized fields and defaults', () => {
  expect(checkedNewDefinition(minimal, rules)).toEqual({
    ...serviceDefaults,
    name: 'Acme Mail',
    description: 'Mail.\nFor agents.',
    website: 'https://acme.example',
    webhook_endpoint_id: 'we_1',
  })
})

test('a change has only the fields that are sent; objects are replaced as a whole, and null clears a field', () => {
  expect(
    checked({ branding: { primary_color: '#abc' }, docs_url: null, dashboard_login_url: null }),
  ).toEqual({
    branding: { ...serviceDefaults.branding, primary_color: '#abc' },
    docs_url: null,
    dashboard_login_url: null,
  })
  expect(checked({})).toEqual({})
})

test('a definition is limited in bytes, and the error names the largest field', () => {
  const sdk = { label: 'npm', install: 'x'.repeat(1000), url: 'https://acme.example' }
  const complete = (sdks: number, more: Pick<ServiceFields, 'branding'> = {}) =>
    checkedNewDefinition({ ...minimal, ...more, sdks: Array(sdks).fill(sdk) }, rules)
  expect(complete(15).sdks).toHaveLength(15)
  expect(problemOf(() => complete(16))).toBe('sdks too_large')
  const branding = { ascii_art: '\u2588'.repeat(4000) }
  expect(problemOf(() => complete(5, { branding }))).toBe('branding too_large')
})

test('an id has 3 to 32 characters that need no escaping', () => {
  for (const id of ['abc', 'a-b', 'a_b', '0-9', 'a'.repeat(32), 'tidegate'])
    expect(checkedServiceId(id, rules)).toBe(id)
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), (id) => {
      if (isServiceId(id)) expect(encodeURIComponent(id)).toMatch(/^[a-z0-9_-]{3,32}$/)
    }),
  )
})

test.each([
  ['its length', 'invalid', ['', 'ab', 'a'.repeat(33)]],
  ['its ends', 'invalid', ['-ab', 'ab-', '_ab', 'ab_']],
  ['its characters', 'invalid', ['Acme', 'a b', 'a.b', 'äcm', 'abc\n', 'a\0b']],
  ['a reserved word', 'reserved', ['gate', 'registry', 'services', 'webhook']],
])('an id is rejected for %s', (_why, issue, ids) => {
  for (const id of ids) expect(problemOf(() => checkedServiceId(id, rules))).toBe(`id ${issue}`)
})

describe('a text', () => {
  test.each<[string, 'name' | 'description', string[]]>([
    ['is blank', 'name', ['', ' \u200b\u3164 ']],
    ['is too long', 'name', ['a'.repeat(101), '🌊'.repeat(101)]],
    ['has several lines', 'name', ['Acme\nMail', 'Acme\u2028Mail', 'Acme\u0085']],
    ['controls terminals', 'name', ['Acme\u0000', 'Acme\u001b[2J']],
    [
      'changes the text direction',
      'name',
      ['Acme \u202eliaM', 'Acme \u2066liaM\u2069', 'Acme\u200f'],
    ],
    ['has a lone surrogate', 'name', ['Acme\ud800']],
    ['is too long', 'description', ['a'.repeat(1001)]],
    ['has too many lines', 'description', [`${'a\n'.repeat(50)}a`]],
    [
      'controls terminals or changes the text direction',
      'description',
      ['a\tb', 'a\rb', 'a\u061cb'],
    ],
  ])('that %s is rejected as %s', (_why, member, texts) => {
    for (const text of texts) expect(problemWith({ [member]: text })).toBe(`${member} invalid`)
  })

  test('is measured in characters, not bytes', () => {
    expect(checked({ name: '🌊'.repeat(100) })).toEqual({ name: '🌊'.repeat(100) })
  })

  test('has no control or invisible characters if it is accepted', () => {
    const unit = fc.constantFrom(...'a \n\r\t\0\u202e\u200b\u2028\ud83c', '🌊')
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 20 }), (description) => {
        try {
          const kept = checked({ description }).description ?? ''
          expect(kept).not.toMatch(/[^\P{Cc}\n]|[\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}]/u)
          expect(kept.trim()).toMatch(/^[^\s].*[^\s]$|^[^\s]$/su)
          expect(checked({ description: kept }).description).toBe(kept)
        } catch (error) {
          expect(error).toMatchObject({ code: 'gate.validation_failed' })
        }
      }),
    )
  })
})

describe('a URL', () => {
  test.each([
    'https://acme.example',
    'https://acme.example/',
    'https://acme.example:8443/a%20b/(c)?d=e&f=1#g/h',
    'https://xn--mller-kva.example/',
    'https://[2001:db8::1]/',
    'HTTPS://Acme.example/',
    'https://a_b.acme.example?c',
  ])('%s is kept as it is', (website) => {
    expect(checked({ website })).toEqual({ website })
  })

  const at = (rest: string) => `https://acme.example${rest}`
  test.each([
    ['is not absolute', ['', 'acme.example', '//acme.example']],
    ['has no host', ['https:acme.example', 'https:///acme.example', 'https://']],
    ['has another scheme', ['ftp://acme.example', 'file:///etc/passwd', 'data:text/html,x']],
    ['is a script', ['javascript:alert(1)', 'javascript://acme.example/%0aalert(1)']],
    ['names a user', ['https://user@acme.example', 'https://a:b@c.example', 'https://@c.example']],
    ['disguises its host', [at('\\@evil.example'), at('/\u202e')]],
    [
      'is not encoded',
      [` ${at('')}`, at('/a b'), at('/\n'), at('/ä'), at('/%zz'), at('/"><script>')],
    ],
    ['has a host of another script', ['https://müller.example']],
    ['has an invalid port', [at(':99999')]],
    ['hides an address', ['https://127.1', 'https://0x7f.0.0.1', 'https://2130706433']],
    ['is too long', [at(`/${'a'.repeat(2048)}`)]],
  ])('that %s is rejected, even in the test environment', (_why, urls) => {
    for (const website of urls)
      for (const environment of ['live', 'test'] as const)
        expect(problemWith({ website }, environment)).toBe('website invalid')
  })

  test('can be http in the test environment', () => {
    const website = 'http://localhost:3000/'
    expect(checked({ website }, 'test')).toEqual({ website })
    expect(problemWith({ website })).toBe('website invalid')
  })

  test.each([
    [{ dashboard_login_url: 'javascript:1' }, 'dashboard_login_url'],
    [{ docs_url: 'javascript:1' }, 'docs_url'],
    [{ branding: { logo_url: 'data:image/svg+xml,x' } }, 'branding.logo_url'],
    [{ consent: { terms_url: 'javascript:1' } }, 'consent.terms_url'],
    [{ consent: { privacy_url: 'javascript:1' } }, 'consent.privacy_url'],
    [{ sdks: [{ label: 'npm', install: 'npm i acme', url: 'javascript:1' }] }, 'sdks.0.url'],
  ])('is validated in every field: %j', (fields, member) => {
    expect(problemWith(fields)).toBe(`${member} invalid`)
  })

  test('leads browsers to the host that it shows if it is accepted', () => {
    const unit = fc.constantFrom(...'@:/\\?#[].', 'acme.example', '%40', 'evil.example')
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 8 }), (rest) => {
        const website = `https://${rest}`
        try {
          checked({ website })
        } catch (error) {
          return void expect(error).toMatchObject({ code: 'gate.validation_failed' })
        }
        const { protocol, hostname, username, password } = new URL(website)
        const shown = rest.split(/[/?#:]/, 1)[0]
        expect([protocol, hostname, username + password]).toEqual(['https:', shown, ''])
      }),
    )
  })
})

describe('environment variables', () => {
  const variable = (key: string, name = 'Key') => ({ name, key, secret: true })
  const keyed = (...keys: string[]) => ({ env_vars: keys.map((key) => variable(key)) })

  test('are kept as they are', () => {
    const env_vars = [variable('ACME_KEY'), { name: 'Region', key: '_acme_region2', secret: false }]
    expect(checked({ env_vars })).toEqual({ env_vars })
  })
  test.each(['', '1KEY', 'A-B', 'A B', 'A=B', 'Ä', 'A\n', 'A'.repeat(129)])(
    'cannot have the key %j',
    (key) => expect(problemWith(keyed('ACME_KEY', key))).toBe('env_vars.1.key invalid'),
  )
  test.each([
    ['control what a process runs', ['PATH', 'path', 'Ld_Preload', 'NODE_OPTIONS']],
    ['steer tools', ['npm_config_registry', 'GIT_CONFIG_COUNT']],
    ['Gate sets', ['FOIL_AGENT_TOKEN', 'ACME_GATE_AGENT_TOKEN', 'other_gate_agent_token']],
    ['the operator sets', ['TIDEGATE_URL']],
  ])('that %s are rejected', (_why, keys) => {
    for (const key of keys) {
      const complete = () => checkedNewDefinition({ ...minimal, ...keyed('ACME_KEY', key) }, rules)
      expect(problemOf(complete)).toBe('env_vars.1.key not_allowed')
    }
  })
  test('must have distinct keys, ignoring case, and are limited to fifty', () => {
    expect(problemWith(keyed('ACME_KEY', 'OTHER', 'acme_key'))).toBe('env_vars.2.key repeated')
    const many = (count: number) => keyed(...Array.from({ length: count }, (_, i) => `KEY_${i}`))
    expect(checked(many(50)).env_vars).toHaveLength(50)
    expect(problemWith(many(51))).toBe('env_vars too_many')
  })
  test('have a display name', () => {
    const env_vars = [variable('ACME_KEY', '\u202eyek')]
    expect(problemWith({ env_vars })).toBe('env_vars.0.name invalid')
  })
})

describe('branding', () => {
  test.each(['#abc', '#ABCD', '#a1b2c3', '#A1B2C3D4'])('accepts the color %s', (primary_color) => {
    expect(checked({ branding: { primary_color } }).branding).toMatchObject({ primary_color })
  })
  test.each(['', 'abc', '#ab', '#abcde', '#abcdefa', '#abg', 'red', '#abc;}', '#abc\n'])(
    'rejects the color %j',
    (secondary_color) => {
      const problem = problemWith({ branding: { secondary_color } })
      expect(problem).toBe('branding.secondary_color invalid')
    },
  )
  test('ASCII art keeps its spaces and has at most sixty lines', () => {
    const drawing = `  /\\\n /  \\  \n${' \n'.repeat(57)}`
    const drawn = (ascii_art: string) => ({ branding: { ascii_art } })
    expect(checked(drawn(drawing)).branding).toMatchObject({ ascii_art: drawing })
    for (const bad of [`${drawing}\n`, '\u001b[31mred', 'x'.repeat(4001)])
      expect(problemWith(drawn(bad))).toBe('branding.ascii_art invalid')
  })
  test('at most twenty SDKs are accepted, in their order', () => {
    const sdk = (label: string) => ({ label, install: 'npm i\nacme', url: 'https://acme.example/' })
    const sdks = ['b', 'a'].map(sdk)
    expect(checked({ sdks })).toEqual({ sdks })
    expect(problemWith({ sdks: Array(21).fill(sdk('a')) })).toBe('sdks too_many')
    expect(problemWith({ sdks: [sdk('a\nb')] })).toBe('sdks.0.label invalid')
  })
})
