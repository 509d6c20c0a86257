import { describe, expect, test } from 'vitest'
import { derivedId } from '../../../../infra/ids.ts'
import type { GateServiceDefinition } from '../../../../schemas/events.ts'
import {
  decideRegistration,
  decideServiceChange,
  decideServiceDisabling,
} from '../../../../services/gate/registry/decide.ts'
import {
  decideDomainVerification,
  decideVerification,
} from '../../../../services/gate/registry/verification.ts'
import { organization } from '../../../support/organization-rows.ts'
import { refusal } from '../../organizations/fixtures.ts'
import {
  definition,
  endpoint,
  eventsOf,
  now,
  outcome,
  scope,
  service,
  strangers,
} from '../fixtures.ts'

const eventId = `evt_${'4'.repeat(26)}`
const path = { ...scope, serviceId: service.id }
const about = { service_id: service.id, organization_id: organization.id, environment: 'live' }
const suspended = { organization: { ...organization, status: 'suspended' as const } }
const disabled = { service: { ...service, status: 'disabled' as const } }
const domainVerified = { service: { ...service, verified_domain: 'acme.example' } }
const vouchedFor = { service: { ...service, verified: true } }
const [inactive, missing] = ['auth.organization_inactive', 'request.not_found']
const variables = (...keys: string[]) => ({
  env_vars: keys.map((key) => ({ name: 'Key', key, secret: true })),
})

type Registration = Partial<Parameters<typeof decideRegistration>[0]>
const register = (changes: Registration = {}, command: object = {}) =>
  decideRegistration(
    {
      organization,
      isRepeated: false,
      similarIds: [],
      count: 0,
      verifiedNames: [],
      endpoint,
      ...changes,
    },
    { ...path, definition, eventId, now, ...command },
  )

describe('registering', () => {
  test('creates an active service in the environment of the key', () => {
    expect(register()).toMatchObject([
      {
        event: {
          type: 'GateServiceRegistered',
          data: { ...about, definition, registered_at: now },
        },
        meta: { eventId, organizationId: organization.id, environment: 'live' },
      },
    ])
  })

  const taken = 'request.conflict id taken'
  const noEndpoint = 'gate.validation_failed webhook_endpoint_id invalid'
  const sameName = { definition: { ...definition, name: 'ACME MAlL' } }
  test.each<[string, Registration, object, string]>([
    [
      'again, whatever has changed since',
      { isRepeated: true, similarIds: [service.id], count: 5, endpoint: undefined },
      {},
      'nothing',
    ],
    ['with an id that is taken', { similarIds: [service.id] }, {}, taken],
    ['with the id of the built-in service', {}, { serviceId: 'tidegate' }, taken],
    [
      'with an id that shares a variable with another service',
      { similarIds: ['acme_mail'] },
      {},
      taken,
    ],
    ['as the fifth service', { count: 4 }, {}, 'GateServiceRegistered'],
    ['as the sixth service', { count: 5 }, {}, 'request.conflict'],
    ['without an endpoint', { endpoint: undefined }, {}, noEndpoint],
    ['with a disabled endpoint', { endpoint: { ...endpoint, status: 'disabled' } }, {}, noEndpoint],
    [
      'with an endpoint that is told of other things',
      { endpoint: { ...endpoint, event_types: ['session.result.persisted'] } },
      {},
      noEndpoint,
    ],
    [
      'with a name like that of a verified service',
      { verifiedNames: ['Acme Mail'] },
      sameName,
      'gate.validation_failed name not_allowed',
    ],
    ['without an organization', { organization: undefined }, {}, missing],
    ['by a suspended organization', suspended, {}, inactive],
  ])('%s', (_how, changes, command, expected) => {
    expect(outcome(() => register(changes, command))).toBe(expected)
  })

  test('a conflict says what to do', () => {
    const { message, details } = refusal(() => register({ similarIds: ['acme_mail'] }))
    expect(details?.fields?.[0]?.received).toBe('acme-mail')
    expect(message).toContain('ACME_MAIL_GATE_AGENT_TOKEN')
    expect(message).not.toContain('acme_mail')
    expect(refusal(() => register({ count: 5 })).details?.next_action).toBe('contact_support')
  })
})

type Change = Partial<Parameters<typeof decideServiceChange>[0]>
const change = (changes: Partial<GateServiceDefinition>, state: Change = {}, by: object = {}) =>
  decideServiceChange(
    { organization, service, verifiedNames: [], endpoint: undefined, ...state },
    { ...path, changes, eventId, now, ...by },
  )

describe('changing', () => {
  test('replaces only the fields that are sent', () => {
    const data = { ...about, definition: { ...definition, name: 'Acme Post' }, changed_at: now }
    expect(eventsOf(change({ name: 'Acme Post' }))).toEqual([{ type: 'GateServiceChanged', data }])
  })

  const defined = (of: Partial<GateServiceDefinition>) => ({
    service: { ...service, definition: { ...definition, ...of } },
  })
  const [marked, steered] = [defined({ name: 'Acme ✓' }), defined(variables('HTTPS_PROXY'))]
  const sdk = { label: 'npm', install: 'x'.repeat(1000), url: 'https://acme.example' }
  const [changed, badName] = ['GateServiceChanged', 'gate.validation_failed name not_allowed']
  const badKey = (i: number) => `gate.validation_failed env_vars.${i}.key not_allowed`
  const base = variables('ACME_BASE_URL')

  test.each<[string, Partial<GateServiceDefinition>, Change, string]>([
    [
      'to the current values',
      { name: 'Acme Mail', consent: { ...definition.consent } },
      {},
      'nothing',
    ],
    [
      'to an endpoint that is not subscribed',
      { webhook_endpoint_id: endpoint.id },
      {},
      'gate.validation_failed webhook_endpoint_id invalid',
    ],
    ['to a subscribed endpoint', { webhook_endpoint_id: endpoint.id }, { endpoint }, 'nothing'],
    [
      'keeps a name that it has',
      { name: 'Acme ✓', docs_url: 'https://acme.example' },
      marked,
      changed,
    ],
    ['rejects a new forbidden name', { name: 'Acme Mail ✓' }, marked, badName],
    ['keeps a registered variable', variables('HTTPS_PROXY', 'ACME_KEY'), steered, changed],
    ['rejects a new forbidden variable', variables('HTTPS_PROXY', 'LD_AUDIT'), steered, badKey(1)],
    [
      'to the name of a verified one',
      { name: 'acme-mail' },
      { verifiedNames: ['Acme Mail'] },
      badName,
    ],
    [
      'to more than fits',
      { sdks: Array(16).fill(sdk) },
      {},
      'gate.validation_failed sdks too_large',
    ],
    ['to a variable that steers programs', base, {}, badKey(0)],
    ['the same, of a verified domain', base, domainVerified, changed],
    [
      'the same, with another website',
      { ...base, website: 'https://other.example' },
      domainVerified,
      badKey(0),
    ],
    ['the same, verified by the operator', base, vouchedFor, changed],
    ['the same, with another name', { ...base, name: 'Other' }, vouchedFor, badKey(0)],
    ['of a disabled service', { name: 'Acme Post' }, disabled, 'request.conflict'],
    ['by a suspended organization', { name: 'Acme Post' }, suspended, inactive],
  ])('%s', (_how, changes, state, expected) => {
    expect(outcome(() => change(changes, state))).toBe(expected)
  })
})

test('a service is disabled once', () => {
  const disable = (state: object, by: object = {}) =>
    decideServiceDisabling({ organization, service, ...state }, { ...path, now, ...by })
  expect(disable({})).toMatchObject([
    {
      event: { type: 'GateServiceDisabled', data: { ...about, disabled_at: now } },
      meta: { eventId: derivedId('evt', service.id, 'disabled') },
    },
  ])
  expect(disable(disabled)).toEqual([])
  expect(outcome(() => disable(suspended))).toBe(inactive)
})

test.each(strangers)('a service outside the scope throws 404: %o', (stranger) => {
  const refusals = [
    refusal(() => change({ name: 'Mine' }, {}, stranger)),
    refusal(() => decideServiceDisabling({ organization, service }, { ...path, ...stranger, now })),
    refusal(() => decideServiceDisabling({ organization, service: undefined }, { ...path, now })),
  ]
  expect(new Set(refusals.map(({ code, message }) => `${code} ${message}`)).size).toBe(1)
  expect(refusals[0]?.code).toBe(missing)
})

describe('verifying the domain', () => {
  type State = Partial<Parameters<typeof decideDomainVerification>[0]>
  const verify = (state: State = {}, by: object = {}) =>
    decideDomainVerification(
      { organization, service, ...state },
      {
        ...path,
        website: definition.website,
        domain: 'acme.example',
        proof: 'dns',
        eventId,
        now,
        ...by,
      },
    )

  test('records where the challenge was found', () => {
    const data = { ...about, domain: 'acme.example', proof: 'dns', verified_at: now }
    expect(eventsOf(verify())).toEqual([{ type: 'GateServiceDomainVerified', data }])
  })

  test.each<[string, State, object, string]>([
    ['again', domainVerified, {}, 'nothing'],
    ['of another website', {}, { website: 'https://acme.example/other' }, 'request.conflict'],
    ['of a disabled service', disabled, {}, 'request.conflict'],
    ["of another organization's service", {}, strangers[0], missing],
    ['by a suspended organization', suspended, {}, inactive],
  ])('%s', (_how, state, by, expected) => {
    expect(outcome(() => verify(state, by))).toBe(expected)
  })
})

test.each([
  ['is set', service, true, [{ type: 'GateServiceVerified', at: 'verified_at' }]],
  ['is set only once', vouchedFor.service, true, []],
  ['is withdrawn', vouchedFor.service, false, [withdrawn()]],
  ['is withdrawn only once', service, false, []],
  ["is withdrawn together with the domain's", domainVerified.service, false, [withdrawn()]],
])("the operator's verification %s", (_how, of, verified, expected) => {
  const decisions = decideVerification(of, { verified, eventId, now })
  expect(eventsOf(decisions)).toEqual(
    expected.map(({ type, at }) => ({ type, data: { ...about, [at]: now } })),
  )
})

function withdrawn() {
  return { type: 'GateServiceVerificationWithdrawn', at: 'withdrawn_at' }
}

test('the operator verifies only services of organizations', () => {
  expect(outcome(() => decideVerification(undefined, { verified: true, eventId, now }))).toBe(
    'request.not_found service not_found',
  )
})
