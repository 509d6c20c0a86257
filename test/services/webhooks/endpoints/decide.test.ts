import { describe, expect, test } from 'vitest'
import { derivedId } from '../../../../infra/ids.ts'
import { subscribableTypes } from '../../../../infra/wire/webhooks/events.ts'
import type { EndpointRow } from '../../../../projections/webhooks/tables.ts'
import type { EndpointFlaggedReason } from '../../../../schemas/events.ts'
import {
  type CreateEndpoint,
  decideEndpointCreation,
  decideEndpointUpdate,
  decideGiveUp,
  decideRecovery,
  decideSecretRotation,
  type EndpointsState,
} from '../../../../services/webhooks/endpoints/decide.ts'
import {
  completeEndpointChanges,
  completeEndpointRequest,
  type EndpointRequest,
  type EndpointUpdate,
} from '../../../../services/webhooks/endpoints/schemas.ts'
import { refusal } from '../../organizations/given.ts'
import {
  disabled,
  endpoint,
  endpointId,
  now,
  organization,
  organizationId,
  publicOnly,
  suspended,
} from './given.ts'

const ids = { organization_id: organizationId, endpoint_id: endpointId }
const creation: CreateEndpoint = {
  organizationId,
  environment: 'test',
  endpointId,
  spec: {
    name: 'Shop',
    url: 'https://shop.example/hooks',
    event_types: ['session.result.persisted'],
  },
  sealedSecret: Buffer.from('sealed'),
  now,
}
const state: EndpointsState = { organization, endpoint, active: 1, services: [] }
const noEndpoint: EndpointsState = { ...state, endpoint: undefined, active: 0 }

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
])('%s needs an endpoint and an active organization', (_, decide, given, code) => {
  expect(codeOf(() => decide(given))).toBe(code)
})

describe('creating', () => {
  test('makes an endpoint in the environment of the key', () => {
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

  test('is the twentieth active endpoint at most, and when repeated does nothing', () => {
    expect(create({ active: 19 })).toHaveLength(1)
    expect(codeOf(() => create({ active: 20 }))).toBe('request.conflict')
    expect(create({ endpoint, active: 20 })).toEqual([])
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

  test('loses outer spaces of the name, and has each type once, in the order of the list', () => {
    expect(completeEndpointRequest(request, publicOnly)).toEqual({
      name: 'Shop',
      url: 'https://shop.example/hooks?a=1',
      event_types: ['session.fingerprint.calculated', 'session.result.persisted'],
    })
  })

  test.each([
    ['https://shop.example', 'https://shop.example/'],
    ['HTTPS://Shop.Example:443/a/../b', 'https://shop.example/b'],
    ['https://müller.example:8443/ü|?a=%2F', 'https://xn--mller-kva.example:8443/%C3%BC%7C?a=%2F'],
  ])('has the URL %s as requests name it: %s', (url, uri) => {
    expect(completeEndpointRequest({ ...request, url }, publicOnly).url).toBe(uri)
    expect(completeEndpointRequest({ ...request, url: uri }, publicOnly).url).toBe(uri)
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
  ])('is refused for its %s: %s %j', (name, issue, part) => {
    for (const [complete, parameter_set] of [
      [() => completeEndpointRequest({ ...request, ...part }, publicOnly), 'create'],
      [() => completeEndpointChanges(part, publicOnly), 'update'],
    ] as const) {
      const error = refusal(complete)
      expect(error).toMatchObject({
        code: 'request.validation_failed',
        details: { fields: [{ name, issue }], parameter_set: `webhook_endpoint_${parameter_set}` },
      })
      expect(JSON.stringify(error.details)).not.toContain('secret')
    }
  })

  test('of changes has what is named alone', () => {
    const changes = completeEndpointChanges({ name: ' A ' }, publicOnly)
    expect(changes).toEqual({ name: 'A', status: undefined })
  })
})

describe('updating', () => {
  test('makes one event for each thing that changes, and no other', () => {
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
        data: { ...ids, event_types, changed_at: now },
      },
      { type: 'WebhookEndpointDisabled', data: { ...ids, reason: 'manual', disabled_at: now } },
    ])
    expect(new Set(decisions.map(({ meta }) => meta.eventId)).size).toBe(4)
    expect(decisions[0]?.meta).toMatchObject({ time: now, organizationId, environment: 'live' })
  })

  test('to what it is already makes none', () => {
    const { name, url, event_types, status } = endpoint
    expect(update({ name, url, event_types, status })).toEqual([])
    expect(update({ status: 'disabled' }, { endpoint: disabled, services: ['acme'] })).toEqual([])
    expect(update({})).toEqual([])
  })

  test('enables a disabled endpoint, unless twenty are active', () => {
    const [decision] = update({ status: 'active' }, { endpoint: disabled, active: 19 })
    const data = { ...ids, enabled_at: now }
    expect(decision?.event).toEqual({ type: 'WebhookEndpointEnabled', data })
    const full = { endpoint: disabled, active: 20 }
    expect(codeOf(() => update({ status: 'active' }, full))).toBe('request.conflict')
    expect(update({ name: 'Store' }, full)).toHaveLength(1)
    expect(update({ status: 'active' }, { active: 20 })).toEqual([])
  })

  const told = { ...endpoint, event_types: [...subscribableTypes] }
  const services = ['acme', 'shop']

  test.each<EndpointUpdate>([
    { status: 'disabled' },
    { event_types: ['session.result.persisted'] },
  ])('by %j is 409 while services are told of approvals there, and names them', (changes) => {
    const refused = refusal(() => update(changes, { endpoint: told, services }))
    expect(refused.code).toBe('request.conflict')
    expect(refused.message).toContain('acme, shop')
  })

  test.each<EndpointUpdate>([
    { name: 'Store' },
    { url: 'https://store.example/' },
    { event_types: ['gate.session.approved'] },
    { status: 'active' },
  ])('by %j goes on telling services of approvals', (changes) => {
    expect(() => update(changes, { endpoint: told, services })).not.toThrow()
  })
})

describe('giving up', () => {
  interface Failed {
    row?: EndpointRow | undefined
    services?: string[]
    reason?: EndpointFlaggedReason
  }
  const attemptedAt = now - 5
  const giveUp = ({ services = [], reason = 'gone', row }: Failed) =>
    decideGiveUp({ endpoint: row, services }, { reason, attemptedAt, eventId: 'evt_1', now })
  const flagged = (flagged_reason: EndpointFlaggedReason) => ({ ...endpoint, flagged_reason })
  const services = ['acme']

  test.each<[string, Failed, string[]]>([
    ['disables an endpoint', { row: endpoint }, ['Disabled']],
    [
      'ignores changes of the name or secret since',
      { row: { ...endpoint, updated_at: now } },
      ['Disabled'],
    ],
    [
      'counts a move up to the request',
      { row: { ...endpoint, target_since: now - 5 } },
      ['Disabled'],
    ],
    [
      'spares one that was moved or enabled since',
      { row: { ...endpoint, target_since: now - 4 } },
      [],
    ],
    ['spares one that is disabled', { row: disabled }, []],
    ['knows of no endpoint', { row: undefined }, []],
    ['flags one that a service needs', { row: endpoint, services, reason: 'failing' }, ['Flagged']],
    ['flags it once', { row: flagged('failing'), services, reason: 'failing' }, []],
    ['flags it again when it is worse', { row: flagged('failing'), services }, ['Flagged']],
    [
      'does not flag it when it is better',
      { row: flagged('gone'), services, reason: 'failing' },
      [],
    ],
    [
      'disables it once no service needs it',
      { row: flagged('gone'), reason: 'failing' },
      ['Disabled'],
    ],
  ])('%s', (_, failed, types) => {
    const decided = giveUp(failed).map(({ event }) => event.type)
    expect(decided).toEqual(types.map((type) => `WebhookEndpoint${type}`))
  })

  test('says why and when', () => {
    const meta = { eventId: 'evt_1', time: now, organizationId, environment: 'live' }
    const data = { ...ids, reason: 'gone', disabled_at: now }
    const event = { type: 'WebhookEndpointDisabled', data }
    expect(giveUp({ row: endpoint })).toEqual([{ event, meta }])
    const [flag] = giveUp({ row: endpoint, services, reason: 'failing' })
    expect(flag?.event.data).toEqual({ ...ids, reason: 'failing', flagged_at: now })
    // Or the endpoint could not be disabled for the same request once no service is told there.
    expect(flag?.meta.eventId).not.toBe('evt_1')
  })

  test('ends with a success, where the endpoint was flagged', () => {
    const recover = (row: EndpointRow | undefined) => decideRecovery(row, { eventId: 'evt_1', now })
    expect(recover(flagged('gone')).map(({ event }) => event.type)).toEqual([
      'WebhookEndpointRecovered',
    ])
    expect([...recover(endpoint), ...recover(undefined)]).toEqual([])
  })
})

describe('rotating', () => {
  /** An endpoint whose secrets end then, behind the newest, which has no end. */
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

  test('makes a secret that signs from now on, the one before for 24 more hours', () => {
    const data = {
      ...ids,
      signing_secret_sealed: Buffer.from('sealed'),
      rotated_at: now,
      previous_expires_at: now + 24 * 60 * 60 * 1000,
    }
    const meta = { eventId: 'evt_1', time: now, organizationId, environment: 'live' }
    expect(rotate()).toEqual([{ event: { type: 'WebhookEndpointSecretRotated', data }, meta }])
  })

  test('is refused while three secrets sign; what has ended does not count', () => {
    expect(rotate(withSecrets(now + 1))).toHaveLength(1)
    expect(rotate(withSecrets(now + 1, now))).toHaveLength(1)
    expect(codeOf(() => rotate(withSecrets(now + 2, now + 1)))).toBe('request.conflict')
  })

  test('does nothing when repeated, and replaces the secret of a disabled endpoint', () => {
    expect(rotate({ ...withSecrets(now + 2, now + 1), isRepeat: true })).toEqual([])
    expect(rotate({ endpoint: disabled })).toHaveLength(1)
  })
})
