import { describe, expect, test } from 'vitest'
import { derivedId } from '../../../../infra/ids.ts'
import {
  decideRegistration,
  decideServiceChange,
  decideServiceDisabling,
  type RegistrationState,
} from '../../../../services/gate/registry/decide.ts'
import {
  decideDomainVerification,
  decideVerification,
} from '../../../../services/gate/registry/verification.ts'
import { now } from '../../../support/gate-rows.ts'
import { organization, refusal } from '../../organizations/given.ts'
import { about, definition, endpoint, eventId, meta, path, service } from './given.ts'

const suspended = { ...organization, status: 'suspended' } as const
const deaf: RegistrationState['endpoint'][] = [
  undefined,
  { ...endpoint, status: 'disabled' },
  { ...endpoint, event_types: ['session.result.persisted'] },
]

describe('registering', () => {
  const command = { ...path, definition, eventId, now }
  const state: RegistrationState = {
    organization,
    isRepeated: false,
    alike: [],
    count: 0,
    verifiedNames: [],
    endpoint,
  }

  test('makes an active service in the environment of the key', () => {
    const data = { ...about, definition, registered_at: now }
    expect(decideRegistration(state, command)).toEqual([
      { event: { type: 'GateServiceRegistered', data }, meta },
    ])
  })

  test('again does nothing, whatever has become of the rest since', () => {
    const later = {
      organization,
      isRepeated: true,
      alike: ['acme-mail'],
      count: 5,
      verifiedNames: [],
      endpoint: undefined,
    }
    expect(decideRegistration(later, command)).toEqual([])
  })

  test('is refused for an id that somebody has, the built-in service too', () => {
    const refusals = [
      refusal(() => decideRegistration({ ...state, alike: ['acme-mail'] }, command)),
      refusal(() => decideRegistration(state, { ...command, serviceId: 'tidegate' })),
    ]
    for (const { code, details } of refusals) {
      expect(code).toBe('request.conflict')
      expect(details).toMatchObject({ fields: [{ name: 'id', issue: 'taken' }] })
    }
  })

  test('is refused where the agent tokens of another service have its variable, and says so', () => {
    const { code, message, details } = refusal(() =>
      decideRegistration({ ...state, alike: ['acme_mail'] }, command),
    )
    expect(code).toBe('request.conflict')
    expect(details).toMatchObject({
      fields: [{ name: 'id', issue: 'taken', received: 'acme-mail' }],
    })
    expect(message).toContain('ACME_MAIL_GATE_AGENT_TOKEN')
    expect(message).not.toContain('acme_mail')
  })

  test('is refused for a sixth service', () => {
    expect(decideRegistration({ ...state, count: 4 }, command)).toHaveLength(1)
    const { code, message, details } = refusal(() =>
      decideRegistration({ ...state, count: 5 }, command),
    )
    expect([code, details?.next_action]).toEqual(['request.conflict', 'contact_support'])
    expect(message).toContain('disabled ones count')
  })

  test('needs an endpoint that is told of approvals', () => {
    for (const told of deaf) {
      const { code, details } = refusal(() =>
        decideRegistration({ ...state, endpoint: told }, command),
      )
      expect(code).toBe('gate.validation_failed')
      expect(details).toMatchObject({
        fields: [{ name: 'webhook_endpoint_id' }],
        parameter_set: 'gate_service_create',
      })
    }
  })

  test('needs an active organization', () => {
    const codeOf = (of: RegistrationState['organization']) =>
      refusal(() => decideRegistration({ ...state, organization: of }, command)).code
    expect(codeOf(undefined)).toBe('request.not_found')
    expect(codeOf(suspended)).toBe('auth.organization_inactive')
  })
})

describe('changing', () => {
  const changes = { name: 'Acme Post' }
  const command = { ...path, changes, eventId, now }
  const state = { organization, service, verifiedNames: [], endpoint: undefined }

  test('replaces what is named and nothing else', () => {
    const data = { ...about, definition: { ...definition, name: 'Acme Post' }, changed_at: now }
    expect(decideServiceChange(state, command)).toEqual([
      { event: { type: 'GateServiceChanged', data }, meta },
    ])
  })

  test('to what it is does nothing', () => {
    const same = { ...command, changes: { name: 'Acme Mail', consent: { ...definition.consent } } }
    expect(decideServiceChange(state, same)).toEqual([])
  })

  test('leaves an endpoint alone that it does not name, and checks the one it names', () => {
    const moved = { ...command, changes: { webhook_endpoint_id: endpoint.id } }
    expect(refusal(() => decideServiceChange(state, moved)).details).toMatchObject({
      fields: [{ name: 'webhook_endpoint_id' }],
      parameter_set: 'gate_service_update',
    })
    expect(decideServiceChange({ ...state, endpoint }, moved)).toEqual([])
  })

  test('keeps a name that it has, and gets no other of its kind', () => {
    const old = { ...service, definition: { ...definition, name: 'Acme ✓' } }
    const named = (name: string) => ({
      ...command,
      changes: { name, docs_url: 'https://acme.example' },
    })
    const change = (name: string) => decideServiceChange({ ...state, service: old }, named(name))
    expect(change('Acme ✓')).toHaveLength(1)
    expect(refusal(() => change('Acme Mail ✓')).details?.fields).toMatchObject([{ name: 'name' }])
  })

  test('keeps a variable that it has, and gets no new one of its kind', () => {
    const variable = (key: string) => ({ name: 'Key', key, secret: true })
    const old = { ...service, definition: { ...definition, env_vars: [variable('HTTPS_PROXY')] } }
    const adding = (...keys: string[]) => ({
      ...command,
      changes: { env_vars: keys.map(variable) },
    })
    const change = (...keys: string[]) =>
      decideServiceChange({ ...state, service: old }, adding(...keys))
    expect(change('HTTPS_PROXY', 'ACME_KEY')).toHaveLength(1)
    expect(refusal(() => change('HTTPS_PROXY', 'LD_AUDIT')).details?.fields).toMatchObject([
      { name: 'env_vars.1.key', issue: 'not_allowed' },
    ])
  })

  test('is refused when it is disabled', () => {
    const disabled = { ...service, status: 'disabled' } as const
    expect(refusal(() => decideServiceChange({ ...state, service: disabled }, command)).code).toBe(
      'request.conflict',
    )
  })
})

describe('a verified name', () => {
  const verified = { ...service, verified_domain: 'acme.example' }
  const variable = (key: string) => ({ name: 'Key', key, secret: true })
  const change = (of: typeof service, changes: object) =>
    decideServiceChange(
      { organization, service: of, verifiedNames: [], endpoint: undefined },
      { ...path, changes, eventId, now },
    )
  const env_vars = [variable('ACME_BASE_URL')]

  test('may have variables that steer programs, unless the same change ends it', () => {
    expect(change(verified, { env_vars })).toHaveLength(1)
    expect(refusal(() => change(service, { env_vars })).details?.fields).toMatchObject([
      { name: 'env_vars.0.key', issue: 'not_allowed' },
    ])
    const moved = { env_vars, website: 'https://other.example' }
    expect(refusal(() => change(verified, moved)).details?.fields).toMatchObject([
      { name: 'env_vars.0.key' },
    ])
  })

  test('of the operator counts, too, until what it is about is another', () => {
    const vouchedFor = { ...service, verified: true }
    expect(change(vouchedFor, { env_vars })).toHaveLength(1)
    expect(refusal(() => change(vouchedFor, { env_vars, name: 'Other' })).code).toBe(
      'gate.validation_failed',
    )
  })

  test('of others is not taken, at registration and later', () => {
    const verifiedNames = ['Acme Mail']
    const registering = () =>
      decideRegistration(
        { organization, isRepeated: false, alike: [], count: 0, verifiedNames, endpoint },
        { ...path, definition: { ...definition, name: 'ACME MAlL' }, eventId, now },
      )
    const renaming = () =>
      decideServiceChange(
        { organization, service, verifiedNames, endpoint: undefined },
        { ...path, changes: { name: 'acme-mail' }, eventId, now },
      )
    for (const asked of [registering, renaming])
      expect(refusal(asked).details?.fields).toMatchObject([{ name: 'name', issue: 'not_allowed' }])
  })
})

describe('verifying the domain', () => {
  const state = { organization, service }
  const command = {
    ...path,
    website: definition.website,
    domain: 'acme.example',
    proof: 'dns',
    eventId,
    now,
  } as const

  test('says what was shown and where, once', () => {
    const data = { ...about, domain: 'acme.example', proof: 'dns', verified_at: now }
    expect(decideDomainVerification(state, command)).toEqual([
      { event: { type: 'GateServiceDomainVerified', data }, meta },
    ])
    const verified = { ...service, verified_domain: 'acme.example' }
    expect(decideDomainVerification({ ...state, service: verified }, command)).toEqual([])
  })

  test('needs the website that was looked at, and an active service of the key', () => {
    const codeOf = (of: typeof state, changes = {}) =>
      refusal(() => decideDomainVerification(of, { ...command, ...changes })).code
    expect(codeOf(state, { website: 'https://acme.example/other' })).toBe('request.conflict')
    expect(codeOf({ ...state, service: { ...service, status: 'disabled' } })).toBe(
      'request.conflict',
    )
    expect(codeOf(state, { organizationId: `org_${'9'.repeat(26)}` })).toBe('request.not_found')
    expect(codeOf({ ...state, organization: suspended })).toBe('auth.organization_inactive')
  })

  test('is ended by the operator as well', () => {
    const withdrawal = {
      type: 'GateServiceVerificationWithdrawn',
      data: { ...about, withdrawn_at: now },
    }
    const verified = { ...service, verified_domain: 'acme.example' }
    expect(decideVerification(verified, { verified: false, eventId, now })).toEqual([
      { event: withdrawal, meta },
    ])
  })
})

describe('disabling', () => {
  test('ends it once', () => {
    const disabling = { ...path, now }
    const event = { type: 'GateServiceDisabled', data: { ...about, disabled_at: now } }
    const once = { ...meta, eventId: derivedId('evt', 'acme-mail', 'disabled') }
    expect(decideServiceDisabling({ organization, service }, disabling)).toEqual([
      { event, meta: once },
    ])
    const disabled = { ...service, status: 'disabled' } as const
    expect(decideServiceDisabling({ organization, service: disabled }, disabling)).toEqual([])
  })
})

test('a service is seen by keys of its organization and environment alone', () => {
  const others = [
    { ...path, environment: 'test' },
    { ...path, organizationId: `org_${'9'.repeat(26)}` },
  ] as const
  for (const other of others) {
    const change = { ...other, changes: { name: 'Mine' }, eventId, now }
    const refusals = [
      refusal(() =>
        decideServiceChange({ organization, service, verifiedNames: [], endpoint }, change),
      ),
      refusal(() => decideServiceDisabling({ organization, service }, { ...other, now })),
      refusal(() =>
        decideServiceDisabling({ organization, service: undefined }, { ...other, now }),
      ),
    ]
    expect(new Set(refusals.map(({ code, message }) => `${code} ${message}`)).size).toBe(1)
    expect(refusals[0]?.code).toBe('request.not_found')
  }
})

test('neither is possible for an organization that is not active', () => {
  const state = { organization: suspended, service, verifiedNames: [], endpoint }
  const codes = [
    refusal(() => decideServiceChange(state, { ...path, changes: { name: 'Mine' }, eventId, now }))
      .code,
    refusal(() => decideServiceDisabling(state, { ...path, now })).code,
  ]
  expect(codes).toEqual(Array(2).fill('auth.organization_inactive'))
})

describe('verifying', () => {
  const verify = (verified: boolean) => ({ verified, eventId, now })
  const given = { ...service, verified: true }

  test('is given and withdrawn', () => {
    const verification = { type: 'GateServiceVerified', data: { ...about, verified_at: now } }
    expect(decideVerification(service, verify(true))).toEqual([{ event: verification, meta }])
    const withdrawal = {
      type: 'GateServiceVerificationWithdrawn',
      data: { ...about, withdrawn_at: now },
    }
    expect(decideVerification(given, verify(false))).toEqual([{ event: withdrawal, meta }])
  })

  test('again does nothing', () => {
    expect(decideVerification(given, verify(true))).toEqual([])
    expect(decideVerification(service, verify(false))).toEqual([])
  })

  test('needs a service of an organization', () => {
    expect(refusal(() => decideVerification(undefined, verify(true))).code).toBe(
      'request.not_found',
    )
  })
})
