import { describe, expect, test } from 'vitest'
import { derivedId } from '../../../../infra/ids.ts'
import { subscribableTypes } from '../../../../infra/wire/webhooks/events.ts'
import type { EndpointRow } from '../../../../projections/webhooks/tables.ts'
import type { EndpointFlaggedReason } from '../../../../schemas/events.ts'
import {
  type CreateEndpoint,
  decideDisableOrFlag,
  decideEndpointCreation,
  decideEndpointUpdate,
  decideRecovery,
  decideSecretRotation,
  type EndpointsState,
} from '../../../../services/webhooks/endpoints/decide.ts'
import {
  checkedEndpointChanges,
  checkedEndpointSpec,
  type EndpointRequest,
  type EndpointUpdate,
} from '../../../../services/webhooks/endpoints/schemas.ts'
import { refusal } from '../../organizations/fixtures.ts'
import {
  disabled,
  endpoint,
  endpointId,
  now,
  organization,
  organizationId,
  publicOnly,
  suspended,
} from './fixtures.ts'

const ids = { organization_id: organizationId, endpoint_id: endpointId }
const creation: CreateEndpoint = {
  organizationId,
  environment: 'test',
  endpointId,
  spec: {
    name: 'Shop',
    url: 'https://shop.example/hooks',
    event_types: ['session.result.persisted'],
    filter: { verdicts: ['bot'], min_risk_score: null },
  },
  sealedSecret: Buffer.from('sealed'),
  now,
}
const state: EndpointsState = { organization, endpoint, activeCount: 1, services: [] }
const noEndpoint: EndpointsState = { ...state, endpoint: undefined, activeCount: 0 }

const create = (given: Partial<EndpointsState> = {}) =>
  decideEndpointCreation({ ...noEndpoint, ...given }, creation)
const update = (changes: EndpointUpdate, given: Partial<EndpointsState> = {}) =>
  decideEndpointUpdate({ ...state, ...given }, { changes, changeId: 'change', now })
const rotate = (given: Partial<EndpointsState & { isRepeat: boolean }> = {}) =>
  decideSecretRotation(
    { ...state, isRepeat: false, ...given },
    { sealedSecret: Buffer.from('sealed'), eventId: 'evt_1', now },
  )
const codeOf = (work: () => unknown) => refusal(work).code

test.each([
  ['creating', create, { organization: undefined }, 'request.not_found'],
  ['creating', create, { organization: suspended }, 'auth.organization_inactive'],
  ['updating', update.bind(null, {}), { endpoint: undefined }, 'request.not_found'],
  ['updating', update.bind(null, {}), { organization: suspended }, 'auth.organization_inactive'],
  ['rotating', rotate, { endpoint: undefined }, 'request.not_found'],
  ['rotating', rotate, { organization: suspended }, 'auth.organization_inactive'],
])('%s throws without an endpoint or an active organization', (_, decide, given, code) => {
  expect(codeOf(() => decide(given))).toBe(code)
})

describe('creating', () => {
  test('creates an endpoint in the environment of the key', () => {
    const data = { ...ids, environment: 'test', ...creation.spec, created_at: now }
    const eventId = derivedId('evt', endpointId, 'created')
    expect(create()).toEqual([
      {
        event: {
          type: 'WebhookEndpointCreated',
          data: { ...data, signing_secret_sealed: Buffer.from('sealed') },
        },
        meta: { eventId, time: now, organizationId, environment: 'test' },
      },
    ])
  })

  test('allows twenty active endpoints, and a repeat has no effect', () => {
    expect(create({ activeCount: 19 })).toHaveLength(1)
    expect(codeOf(() => create({ activeCount: 20 }))).toBe('request.conflict')
    expect(create({ endpoint, activeCount: 20 })).toEqual([])
  })
})

describe('a request', () => {
  const request: EndpointRequest = {
    name: ' Shop ',
    url: 'https://shop.example/hooks?a=1',
    event_types: [
      'session.result.persisted',
      'session.fingerprint.calculated',
      'session.result.persisted',
    ],
  }

  test('gets a trimmed name, and each event type once, in a fixed order', () => {
    expect(checkedEndpointSpec(request, publicOnly)).toEqual({
      name: 'Shop',
      url: 'https://shop.example/hooks?a=1',
      event_types: ['session.fingerprint.calculated', 'session.result.persisted'],
      filter: null,
    })
  })

  test.each([
    ['https://shop.example', 'https://shop.example/'],
    ['HTTPS://Shop.Example:443/a/../b', 'https://shop.example/b'],
    ['https://müller.example:8443/ü|?a=%2F', 'https://xn--mller-kva.example:8443/%C3%BC%7C?a=%2F'],
  ])('gets the URL %s as requests name it: %s', (url, uri) => {
    expect(checkedEndpointSpec({ ...request, url }, publicOnly).url).toBe(uri)
    expect(checkedEndpointSpec({ ...request, url: uri }, publicOnly).url).toBe(uri)
  })

  test.each<[string, string, Partial<EndpointRequest>]>([
    ['name', 'invalid', { name: '  ' }],
    ['name', 'invalid', { name: 'x'.repeat(101) }],
    ['name', 'invalid', { name: 'a\nb' }],
    ['url', 'invalid', { url: 'http://shop.example/hooks' }],
    ['url', 'invalid', { url: 'https://10.0.0.1/hooks' }],
    ['url', 'invalid', { url: 'https://user:secret@shop.example/' }],
    ['url', 'invalid', { url: '/hooks' }],
    ['url', 'invalid', { url: 'https://a"b.example/' }],
    ['event_types', 'required', { event_types: [] }],
    [
      'event_types.1',
      'invalid_value',
      { event_types: ['session.result.persisted', 'session.opened'] },
    ],
    ['event_types.0', 'invalid_value', { event_types: ['webhook.test'] }],
  ])('is rejected for its %s: %s %j', (name, issue, part) => {
    for (const [complete, parameter_set] of [
      [() => checkedEndpointSpec({ ...request, ...part }, publicOnly), 'create'],
      [() => checkedEndpointChanges(part, publicOnly), 'update'],
    ] as const) {
      const error = refusal(complete)
      expect(error).toMatchObject({
        code: 'request.validation_failed',
        details: { fields: [{ name, issue }], parameter_set: `webhook_endpoint_${parameter_set}` },
      })
      expect(JSON.stringify(error.details)).not.toContain('secret')
    }
  })

  test('for changes has only the fields that are sent', () => {
    const changes = checkedEndpointChanges({ name: ' A ' }, publicOnly)
    expect(changes).toEqual({ name: 'A', status: undefined })
  })
})

describe('updating', () => {
  test('makes one event per changed field', () => {
    const changes = {
      name: 'Store',
      url: 'https://store.example/',
      event_types: ['gate.session.approved'],
      status: 'disabled',
    } satisfies EndpointUpdate
    const { name, url, event_types } = changes
    const decisions = update(changes)
    expect(decisions.map(({ event }) => event)).toEqual([
      { type: 'WebhookEndpointRenamed', data: { ...ids, name, renamed_at: now } },
      { type: 'WebhookEndpointMoved', data: { ...ids, url, moved_at: now } },
      {
        type: 'WebhookEndpointSubscriptionsChanged',
        data: { ...ids, event_types, filter: null, changed_at: now },
      },
      { type: 'WebhookEndpointDisabled', data: { ...ids, reason: 'manual', disabled_at: now } },
    ])
    expect(new Set(decisions.map(({ meta }) => meta.eventId)).size).toBe(4)
    expect(decisions[0]?.meta).toMatchObject({ time: now, organizationId, environment: 'live' })
  })

  test('a filter makes one event with the subscriptions, and removing it another', () => {
    const filter = { verdicts: null, min_risk_score: 60 }
    const { event_types } = endpoint
    const changed = (data: object) => ({
      type: 'WebhookEndpointSubscriptionsChanged',
      data: { ...ids, event_types, ...data, changed_at: now },
    })
    const filtered = { ...endpoint, filter }
    expect(update({ filter }).map(({ event }) => event)).toEqual([changed({ filter })])
    expect(update({ filter: { ...filter } }, { endpoint: filtered })).toEqual([])
    expect(update({ name: 'Store' }, { endpoint: filtered })).toHaveLength(1)
    expect(update({ filter: null }, { endpoint: filtered }).map(({ event }) => event)).toEqual([
      changed({ filter: null }),
    ])
  })

  test('to the current values makes no event', () => {
    const { name, url, event_types, filter, status } = endpoint
    expect(update({ name, url, event_types, filter, status })).toEqual([])
    expect(update({ status: 'disabled' }, { endpoint: disabled, services: ['acme'] })).toEqual([])
    expect(update({})).toEqual([])
  })

  test('enables a disabled endpoint, unless twenty are active', () => {
    const [decision] = update({ status: 'active' }, { endpoint: disabled, activeCount: 19 })
    const data = { ...ids, enabled_at: now }
    expect(decision?.event).toEqual({ type: 'WebhookEndpointEnabled', data })
    const full = { endpoint: disabled, activeCount: 20 }
    expect(codeOf(() => update({ status: 'active' }, full))).toBe('request.conflict')
    expect(update({ name: 'Store' }, full)).toHaveLength(1)
    expect(update({ status: 'active' }, { activeCount: 20 })).toEqual([])
  })

  const told = { ...endpoint, event_types: [...subscribableTypes] }
  const services = ['acme', 'shop']

  test.each<EndpointUpdate>([
    { status: 'disabled' },
    { event_types: ['session.result.persisted'] },
  ])('by %j is 409 while Gate services need the endpoint, and names them', (changes) => {
    const refused = refusal(() => update(changes, { endpoint: told, services }))
    expect(refused.code).toBe('request.conflict')
    expect(refused.message).toContain('acme, shop')
  })

  test.each<EndpointUpdate>([
    { name: 'Store' },
    { url: 'https://store.example/' },
    { event_types: ['gate.session.approved'] },
    { status: 'active' },
  ])('by %j keeps the endpoint subscribed to approvals', (changes) => {
    expect(() => update(changes, { endpoint: told, services })).not.toThrow()
  })
})

describe('disabling or flagging', () => {
  interface Failed {
    row?: EndpointRow | undefined
    services?: string[]
    reason?: EndpointFlaggedReason
  }
  const attemptedAt = now - 5
  const giveUp = ({ services = [], reason = 'gone', row }: Failed) =>
    decideDisableOrFlag({ endpoint: row, services }, { reason, attemptedAt, eventId: 'evt_1', now })
  const flagged = (flagged_reason: EndpointFlaggedReason) => ({ ...endpoint, flagged_reason })
  const services = ['acme']

  test.each<[string, Failed, string[]]>([
    ['disables an endpoint', { row: endpoint }, ['Disabled']],
    [
      'ignores changes of the name or secret since the attempt',
      { row: { ...endpoint, updated_at: now } },
      ['Disabled'],
    ],
    [
      'disables an endpoint that was moved before the attempt',
      { row: { ...endpoint, target_since: now - 5 } },
      ['Disabled'],
    ],
    [
      'keeps an endpoint that was moved or enabled since the attempt',
      { row: { ...endpoint, target_since: now - 4 } },
      [],
    ],
    ['ignores a disabled endpoint', { row: disabled }, []],
    ['ignores an unknown endpoint', { row: undefined }, []],
    [
      'flags an endpoint that a service needs',
      { row: endpoint, services, reason: 'failing' },
      ['Flagged'],
    ],
    ['does not repeat a flag', { row: flagged('failing'), services, reason: 'failing' }, []],
    ['replaces a flag with a more serious one', { row: flagged('failing'), services }, ['Flagged']],
    [
      'does not replace a flag with a less serious one',
      { row: flagged('gone'), services, reason: 'failing' },
      [],
    ],
    [
      'disables a flagged endpoint once no service needs it',
      { row: flagged('gone'), reason: 'failing' },
      ['Disabled'],
    ],
  ])('%s', (_, failed, types) => {
    const decided = giveUp(failed).map(({ event }) => event.type)
    expect(decided).toEqual(types.map((type) => `WebhookEndpoint${type}`))
  })

  test('records the reason and the time', () => {
    const meta = { eventId: 'evt_1', time: now, organizationId, environment: 'live' }
    const data = { ...ids, reason: 'gone', disabled_at: now }
    const event = { type: 'WebhookEndpointDisabled', data }
    expect(giveUp({ row: endpoint })).toEqual([{ event, meta }])
    const [flag] = giveUp({ row: endpoint, services, reason: 'failing' })
    expect(flag?.event.data).toEqual({ ...ids, reason: 'failing', flagged_at: now })
    // Otherwise the same attempt could not disable the endpoint once no service needs it.
    expect(flag?.meta.eventId).not.toBe('evt_1')
  })

  test('a success clears the flag', () => {
    const recover = (row: EndpointRow | undefined) => decideRecovery(row, { eventId: 'evt_1', now })
    expect(recover(flagged('gone')).map(({ event }) => event.type)).toEqual([
      'WebhookEndpointRecovered',
    ])
    expect([...recover(endpoint), ...recover(undefined)]).toEqual([])
  })
})

describe('rotating', () => {
  /** Returns an endpoint whose earlier secrets expire at these times. */
  const withSecrets = (...ends: number[]) => ({
    endpoint: {
      ...endpoint,
      secrets: [null, ...ends].map((expires_at) => ({
        sealed: Buffer.from(String(expires_at)),
        created_at: 1,
        expires_at,
      })),
    },
  })

  test('adds a secret, and the previous one signs for another 24 hours', () => {
    const data = {
      ...ids,
      signing_secret_sealed: Buffer.from('sealed'),
      rotated_at: now,
      previous_expires_at: now + 24 * 60 * 60 * 1000,
    }
    const meta = { eventId: 'evt_1', time: now, organizationId, environment: 'live' }
    expect(rotate()).toEqual([{ event: { type: 'WebhookEndpointSecretRotated', data }, meta }])
  })

  test('throws while three secrets are active, not counting expired ones', () => {
    expect(rotate(withSecrets(now + 1))).toHaveLength(1)
    expect(rotate(withSecrets(now + 1, now))).toHaveLength(1)
    expect(codeOf(() => rotate(withSecrets(now + 2, now + 1)))).toBe('request.conflict')
  })

  test('has no effect when repeated, and rotates the secret of a disabled endpoint', () => {
    expect(rotate({ ...withSecrets(now + 2, now + 1), isRepeat: true })).toEqual([])
    expect(rotate({ endpoint: disabled })).toHaveLength(1)
  })
})
