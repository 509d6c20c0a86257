import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Environment } from '../../../../schemas/events.ts'
import {
  type CompleteFields,
  checkedDefinition,
  completeDefinition,
} from '../../../../services/gate/registry/definition.ts'
import { checkedServiceId, isServiceId } from '../../../../services/gate/registry/fields.ts'
import type { ServiceFields } from '../../../../services/gate/registry/schemas.ts'
import { refusal } from '../../organizations/given.ts'

const minimal: CompleteFields = {
  name: ' Acme Mail ',
  description: 'Mail.\r\nFor agents.\n',
  website: 'https://acme.example',
  webhook_endpoint_id: 'we_1',
}
const rules = { environment: 'live', parameterSet: 'gate_service_update' } as const

const checked = (fields: ServiceFields, environment: Environment = 'live') =>
  checkedDefinition(fields, { ...rules, environment })

/** `member issue` of what was refused. */
function problemOf(fields: ServiceFields, environment: Environment = 'live'): string {
  const { code, details } = refusal(() => checked(fields, environment))
  expect([code, details?.parameter_set]).toEqual(['gate.validation_failed', 'gate_service_update'])
  const [field] = details?.fields ?? []
  expect(field).not.toHaveProperty('received')
  return `${field?.name} ${field?.issue}`
}

test('a new service has what is said, normalised, and else nothing', () => {
  expect(completeDefinition(minimal, rules)).toEqual({
    name: 'Acme Mail',
    description: 'Mail.\nFor agents.',
    website: 'https://acme.example',
    discoverable: false,
    webhook_endpoint_id: 'we_1',
    dashboard_login_url: null,
    docs_url: null,
    claim_required: false,
    minimum_verdict: null,
    env_vars: [],
    sdks: [],
    branding: { logo_url: null, primary_color: null, secondary_color: null, ascii_art: null },
    consent: { terms_url: null, privacy_url: null },
  })
})

test('a change is as much as is said; objects are replaced as a whole, null clears', () => {
  expect(
    checked({ branding: { primary_color: '#abc' }, docs_url: null, dashboard_login_url: null }),
  ).toEqual({
    branding: { logo_url: null, primary_color: '#abc', secondary_color: null, ascii_art: null },
    docs_url: null,
    dashboard_login_url: null,
  })
  expect(checked({})).toEqual({})
})

test('all of it together is bounded; what takes the most is named', () => {
  const sdk = { label: 'npm', install: 'x'.repeat(1000), url: 'https://acme.example' }
  const ofSize = (sdks: number) => () =>
    completeDefinition({ ...minimal, sdks: Array(sdks).fill(sdk) }, rules)
  expect(ofSize(15)).not.toThrow()
  const { code, details } = refusal(ofSize(16))
  expect(code).toBe('gate.validation_failed')
  expect(details?.fields).toMatchObject([{ name: 'sdks', issue: 'too_large' }])
  // Bytes, not characters.
  const drawing = { branding: { ascii_art: '\u2588'.repeat(4000) } }
  const { details: drawn } = refusal(() =>
    completeDefinition({ ...minimal, ...drawing, sdks: Array(5).fill(sdk) }, rules),
  )
  expect(drawn?.fields).toMatchObject([{ name: 'branding', issue: 'too_large' }])
})

describe('ids', () => {
  const issueOf = (id: string) =>
    refusal(() => checkedServiceId(id, rules)).details?.fields?.map(
      ({ name, issue }) => `${name} ${issue}`,
    )

  test.each(['abc', 'a-b', 'a_b', '0-9', 'a'.repeat(32), 'tidegate'])('%s is one', (id) => {
    expect(checkedServiceId(id, rules)).toBe(id)
  })
  test.each([
    '',
    'ab',
    'a'.repeat(33),
    'Acme',
    '-ab',
    'ab-',
    '_ab',
    'ab_',
    'a b',
    'a.b',
    'äcm',
    'abc\n',
    'a\0b',
  ])('%j is none', (id) => expect(issueOf(id)).toEqual(['id invalid']))
  test.each(['gate', 'registry', 'services', 'webhook'])('%s is reserved', (id) => {
    expect(issueOf(id)).toEqual(['id reserved'])
  })
  test('what is one needs no escaping in a path, a shell or a variable', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), (id) => {
        if (isServiceId(id)) expect(encodeURIComponent(id)).toMatch(/^[a-z0-9_-]{3,32}$/)
      }),
    )
  })
})

describe('texts', () => {
  test.each([
    ['name', ''],
    ['name', ' \u200b\u3164 '],
    ['name', 'a'.repeat(101)],
    ['name', 'Acme\nMail'],
    ['name', 'Acme\u2028Mail'],
    ['name', 'Acme\u0000'],
    ['name', 'Acme\u001b[2J'],
    ['name', 'Acme\u0085'],
    ['name', 'Acme \u202eliaM'],
    ['name', 'Acme \u2066liaM\u2069'],
    ['name', 'Acme\u200f'],
    ['name', 'Acme\ud800'],
    ['description', 'a'.repeat(1001)],
    ['description', `${'a\n'.repeat(50)}a`],
    ['description', 'a\tb'],
    ['description', 'a\rb'],
    ['description', 'a\u061cb'],
  ] as const)('%s %j is refused', (member, text) => {
    expect(problemOf({ [member]: text })).toBe(`${member} invalid`)
  })

  test('characters count, not their bytes or halves', () => {
    expect(checked({ name: '🌊'.repeat(100) })).toEqual({ name: '🌊'.repeat(100) })
    expect(problemOf({ name: '🌊'.repeat(101) })).toBe('name invalid')
  })

  test('whatever is sent, what is kept shows something and steers nothing', () => {
    const odd = fc.string({
      unit: fc.constantFrom(
        'a',
        ' ',
        '\n',
        '\r',
        '\t',
        '\0',
        '\u202e',
        '\u200b',
        '\u2028',
        '\ud83c',
        '🌊',
      ),
      maxLength: 20,
    })
    fc.assert(
      fc.property(odd, (description) => {
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

describe('URLs', () => {
  test.each([
    'https://acme.example',
    'https://acme.example/',
    'https://acme.example:8443/a%20b/(c)?d=e&f=1#g/h',
    'https://xn--mller-kva.example/',
    'https://[2001:db8::1]/',
    'HTTPS://Acme.example/',
    'https://a_b.acme.example?c',
  ])('%s is one, and stays as it is', (website) => {
    expect(checked({ website })).toEqual({ website })
  })

  const bad = [
    '',
    'acme.example',
    '//acme.example',
    'https:acme.example',
    'https:///acme.example',
    'https://',
    'ftp://acme.example',
    'javascript:alert(1)',
    'javascript://acme.example/%0aalert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'https://user@acme.example',
    'https://user:pass@acme.example',
    'https://@acme.example',
    'https://acme.example\\@evil.example',
    ' https://acme.example',
    'https://acme.example/a b',
    'https://acme.example/\n',
    'https://acme.example/\u202e',
    'https://müller.example',
    'https://acme.example/ä',
    'https://acme.example/%zz',
    'https://acme.example/"><script>',
    'https://acme.example:99999',
    'https://127.1',
    'https://0x7f.0.0.1',
    'https://2130706433',
    `https://acme.example/${'a'.repeat(2048)}`,
  ]
  test.each(bad)('%j is none, in the test environment neither', (website) => {
    expect(problemOf({ website })).toBe('website invalid')
    expect(problemOf({ website }, 'test')).toBe('website invalid')
  })

  test('http is one in the test environment', () => {
    const website = 'http://localhost:3000/'
    expect(checked({ website }, 'test')).toEqual({ website })
    expect(problemOf({ website })).toBe('website invalid')
  })

  test.each([
    [{ dashboard_login_url: 'javascript:1' }, 'dashboard_login_url'],
    [{ docs_url: 'javascript:1' }, 'docs_url'],
    [{ branding: { logo_url: 'data:image/svg+xml,x' } }, 'branding.logo_url'],
    [{ consent: { terms_url: 'javascript:1' } }, 'consent.terms_url'],
    [{ consent: { privacy_url: 'javascript:1' } }, 'consent.privacy_url'],
    [{ sdks: [{ label: 'npm', install: 'npm i acme', url: 'javascript:1' }] }, 'sdks.0.url'],
  ])('%j is refused', (fields, member) => {
    expect(problemOf(fields)).toBe(`${member} invalid`)
  })

  test('what is kept leads browsers to the host that it shows', () => {
    const part = fc.constantFrom(
      'acme.example',
      '@',
      ':',
      '/',
      '\\',
      '?',
      '#',
      '[',
      ']',
      '%40',
      'evil.example',
      '.',
    )
    fc.assert(
      fc.property(fc.string({ unit: part, maxLength: 8 }), (rest) => {
        const website = `https://${rest}`
        try {
          checked({ website })
        } catch (error) {
          return void expect(error).toMatchObject({ code: 'gate.validation_failed' })
        }
        const url = new URL(website)
        const shown = website.slice('https://'.length).split(/[/?#:]/, 1)[0]
        expect([url.protocol, url.hostname, url.username + url.password]).toEqual([
          'https:',
          shown,
          '',
        ])
      }),
    )
  })
})

describe('a name', () => {
  const nameProblem = (name: string) => {
    const { details } = refusal(() => completeDefinition({ ...minimal, name }, rules))
    return details?.fields?.map((field) => `${field.name} ${field.issue}`).join()
  }

  test.each([
    'Acme Mail',
    'AT&T',
    'C++ Cloud',
    'Café Zürich',
    'Łódź Pay',
    'NTTドコモ',
    '株式会社メール',
    '네이버 Pay',
    '微信 Pay',
    'Яндекс',
    'Ελληνική',
    'بريد',
    'דואר',
    'डाक',
    'ไปรษณีย์',
    'Acme™',
    'I ♥ Mail',
    '1Password',
    'Tidal',
  ])('%s is one', (name) => {
    expect(completeDefinition({ ...minimal, name }, rules).name).toBe(name)
  })

  test.each(['Acme Maiⅼ Τ', 'Αcme', 'Pаypal', 'Яndex', 'Acme Почта', 'ドコモ 네이버'])(
    '%s mixes scripts',
    (name) => {
      expect(nameProblem(name)).toBe('name invalid')
    },
  )

  test.each([
    'Acme ✓',
    'Acme ✔️ Verified',
    '✅ Acme',
    'Acme ☑',
    'Acme √',
    'Tidegate',
    'TIDEGATE Mail',
    'tide-gate',
    'Ｔｉｄｅｇａｔｅ',
  ])('%s imitates the mark or us', (name) => {
    expect(nameProblem(name)).toBe('name not_allowed')
  })
})

describe('environment variables', () => {
  const variable = (key: string, name = 'Key') => ({ name, key, secret: true })
  const keyProblem = (...keys: string[]) =>
    problemOf({ env_vars: keys.map((key) => variable(key)) })

  test('are kept as they are', () => {
    const env_vars = [variable('ACME_KEY'), { name: 'Region', key: '_acme_region2', secret: false }]
    expect(checked({ env_vars })).toEqual({ env_vars })
  })
  test.each(['', '1KEY', 'A-B', 'A B', 'A=B', 'Ä', 'A\n', 'A'.repeat(129)])(
    '%j is no key',
    (key) => {
      expect(keyProblem('ACME_KEY', key)).toBe('env_vars.1.key invalid')
    },
  )
  test.each([
    'PATH',
    'path',
    'Ld_Preload',
    'NODE_OPTIONS',
    'npm_config_registry',
    'GIT_CONFIG_COUNT',
    'FOIL_AGENT_TOKEN',
    'ACME_GATE_AGENT_TOKEN',
    'other_gate_agent_token',
    'TIDEGATE_URL',
  ])('%s is none for a service to set', (key) => {
    const env_vars = [variable('ACME_KEY'), variable(key)]
    const { code, details } = refusal(() => completeDefinition({ ...minimal, env_vars }, rules))
    expect(code).toBe('gate.validation_failed')
    expect(details?.fields).toMatchObject([{ name: 'env_vars.1.key', issue: 'not_allowed' }])
  })
  test('come once each, in whatever case, and at most fifty', () => {
    expect(keyProblem('ACME_KEY', 'OTHER', 'acme_key')).toBe('env_vars.2.key repeated')
    const many = (count: number) => Array.from({ length: count }, (_, i) => `KEY_${i}`)
    expect(checked({ env_vars: many(50).map((key) => variable(key)) }).env_vars).toHaveLength(50)
    expect(keyProblem(...many(51))).toBe('env_vars too_many')
  })
  test('have a name for people', () => {
    expect(problemOf({ env_vars: [variable('ACME_KEY', '\u202eyek')] })).toBe(
      'env_vars.0.name invalid',
    )
  })
})

describe('looks', () => {
  test.each(['#abc', '#ABCD', '#a1b2c3', '#A1B2C3D4'])('%s is a colour', (primary_color) => {
    expect(checked({ branding: { primary_color } }).branding).toMatchObject({ primary_color })
  })
  test.each(['', 'abc', '#ab', '#abcde', '#abcdefa', '#abg', 'red', '#abc;}', '#abc\n'])(
    '%j is none',
    (color) => {
      expect(problemOf({ branding: { secondary_color: color } })).toBe(
        'branding.secondary_color invalid',
      )
    },
  )
  test('a drawing keeps its spaces and has at most sixty lines', () => {
    const ascii_art = `  /\\\n /  \\  \n${' \n'.repeat(57)}`
    expect(checked({ branding: { ascii_art } }).branding).toMatchObject({ ascii_art })
    expect(problemOf({ branding: { ascii_art: `${ascii_art}\n` } })).toBe(
      'branding.ascii_art invalid',
    )
    expect(problemOf({ branding: { ascii_art: '\u001b[31mred' } })).toBe(
      'branding.ascii_art invalid',
    )
    expect(problemOf({ branding: { ascii_art: 'x'.repeat(4001) } })).toBe(
      'branding.ascii_art invalid',
    )
  })
  test('sdks are as many as twenty, their order kept', () => {
    const sdk = (label: string) => ({ label, install: 'npm i\nacme', url: 'https://acme.example/' })
    const sdks = ['b', 'a'].map(sdk)
    expect(checked({ sdks })).toEqual({ sdks })
    expect(problemOf({ sdks: Array(21).fill(sdk('a')) })).toBe('sdks too_many')
    expect(problemOf({ sdks: [sdk('a\nb')] })).toBe('sdks.0.label invalid')
  })
})
