import { describe, expect, test } from 'vitest'
import { derivedId } from '../../../../infra/ids.ts'
import { subscribableTypes } from '../../../../infra/wire/webhooks/events.ts'
import type { EndpointRow, SigningSecretRow } from '../../../../projections/webhooks/tables.ts'
import type { EndpointFlaggedReason } from '../../../../schemas/events.ts'
import {
  type CreateEndpoint,
  decideEndpointCreation,
  decideEndpointUpdate,
  decideGivingUp,
  decideRecovery,
  decideSecretRotation,
  type EndpointsState,
  overlapMs,
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
const event = {
  type: 'WebhookEndpointCreated',
  data: {
    organization_id: organizationId,
    endpoint_id: endpointId,
    environment: 'test',
    ...creation.spec,
    signing_secret_sealed: Buffer.from('sealed'),
    created_at: now,
  },
}
const createdMeta = {
  eventId: derivedId('evt', endpointId, 'created'),
  time: now,
  organizationId,
  environment: 'test',
}

const noEndpoint = { organization, endpoint: undefined, active: 0, services: [] }

describe('creating', () => {
  test('makes an endpoint in the environment of the key', () => {
    expect(decideEndpointCreation(noEndpoint, creation)).toEqual([{ event, meta: createdMeta }])
  })

  test('is the twentieth active endpoint at most', () => {
    expect(decideEndpointCreation({ ...noEndpoint, active: 19 }, creation)).toHaveLength(1)
    expect(
      refusal(() => decideEndpointCreation({ ...noEndpoint, active: 20 }, creation)).code,
    ).toBe('request.conflict')
  })

  test('again does nothing, also when there are as many as there can be', () => {
    expect(decideEndpointCreation({ ...noEndpoint, endpoint, active: 20 }, creation)).toEqual([])
  })

  test('needs an active organization', () => {
    const codeOf = (state: typeof organization | undefined) =>
      refusal(() => decideEndpointCreation({ ...noEndpoint, organization: state }, creation)).code
    expect(codeOf(undefined)).toBe('request.not_found')
    expect(codeOf(suspended)).toBe('auth.organization_inactive')
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
    ['https://shop.example:8443/hooks?a=%2F', 'https://shop.example:8443/hooks?a=%2F'],
    [
      'https://müller.example/ü|{x}?ö=[1]%',
      'https://xn--mller-kva.example/%C3%BC%7C%7Bx%7D?%C3%B6=%5B1%5D%25',
    ],
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
    const error = refusal(() => completeEndpointRequest({ ...request, ...part }, publicOnly))
    expect(error).toMatchObject({
      code: 'request.validation_failed',
      message: `${name}: ${issue}`,
      details: { fields: [{ name, issue }], parameter_set: 'webhook_endpoint_create' },
    })
    expect(JSON.stringify(error.details)).not.toContain('secret')
  })
})

const none: readonly string[] = []
const ids = { organization_id: organizationId, endpoint_id: endpointId }

function update(changes: EndpointUpdate, { current = endpoint, active = 1, services = none } = {}) {
  const state = { organization, endpoint: current, active, services }
  return decideEndpointUpdate(state, { changes, changeId: 'change', now })
}

describe('updating', () => {
  test('makes one event for each thing that changes, and no other', () => {
    const decisions = update({
      name: 'Store',
      url: 'https://store.example/',
      event_types: ['gate.session.approved'],
      status: 'disabled',
    })
    expect(decisions.map(({ event }) => event)).toEqual([
      { type: 'WebhookEndpointRenamed', data: { ...ids, name: 'Store', renamed_at: now } },
      {
        type: 'WebhookEndpointMoved',
        data: { ...ids, url: 'https://store.example/', moved_at: now },
      },
      {
        type: 'WebhookEndpointSubscriptionsChanged',
        data: { ...ids, event_types: ['gate.session.approved'], changed_at: now },
      },
      { type: 'WebhookEndpointDisabled', data: { ...ids, reason: 'manual', disabled_at: now } },
    ])
    expect(new Set(decisions.map(({ meta }) => meta.eventId)).size).toBe(4)
    expect(decisions[0]?.meta).toMatchObject({ time: now, organizationId, environment: 'live' })
  })

  test('to what it is already makes none', () => {
    const { name, url, event_types, status } = endpoint
    expect(update({ name, url, event_types, status })).toEqual([])
    expect(
      update({ status: 'disabled' }, { current: { ...disabled, disabled_reason: 'gone' } }),
    ).toEqual([])
    expect(update({})).toEqual([])
  })

  test('enables a disabled endpoint, unless twenty are active', () => {
    const [decision] = update({ status: 'active' }, { current: disabled, active: 19 })
    expect(decision?.event).toEqual({
      type: 'WebhookEndpointEnabled',
      data: { ...ids, enabled_at: now },
    })
    const full = { current: disabled, active: 20 }
    expect(refusal(() => update({ status: 'active' }, full)).code).toBe('request.conflict')
    // Nothing else of it needs a place among the twenty.
    expect(update({ name: 'Store' }, full)).toHaveLength(1)
    expect(update({ status: 'active' }, { active: 20 })).toEqual([])
  })

  test('is 409 where services would not be told of approvals any more, and only there', () => {
    const told = { ...endpoint, event_types: [...subscribableTypes] }
    const services = ['acme', 'shop']
    const ending: EndpointUpdate[] = [
      { status: 'disabled' },
      { event_types: ['session.result.persisted'] },
    ]
    for (const changes of ending) {
      const refused = refusal(() => update(changes, { current: told, services }))
      expect(refused.code).toBe('request.conflict')
      expect(refused.message).toContain('acme, shop')
    }
    const kept: EndpointUpdate[] = [
      { name: 'Store' },
      { url: 'https://store.example/' },
      { event_types: ['gate.session.approved'] },
      { status: 'active' },
    ]
    for (const changes of kept)
      expect(() => update(changes, { current: told, services })).not.toThrow()
    const ended = { ...told, status: 'disabled', disabled_reason: 'manual' } as const
    expect(update({ status: 'disabled' }, { current: ended, services })).toEqual([])
  })

  test('is 404 without the endpoint, 403 when the organization is not active', () => {
    const state = { organization, endpoint, active: 1, services: none }
    const codeOf = (other: Partial<EndpointsState>) =>
      refusal(() =>
        decideEndpointUpdate(
          { ...state, ...other },
          { changes: { name: 'A' }, changeId: 'c', now },
        ),
      ).code
    expect(codeOf({ endpoint: undefined })).toBe('request.not_found')
    expect(codeOf({ organization: suspended })).toBe('auth.organization_inactive')
  })
})

test('changes are checked as a new endpoint is, those that are there', () => {
  expect(completeEndpointChanges({ name: ' A ' }, publicOnly)).toEqual({
    name: 'A',
    status: undefined,
  })
  const refused = {
    name: { name: '' },
    url: { url: 'ftp://a.example' },
    event_types: { event_types: [] },
  }
  for (const [name, changes] of Object.entries(refused)) {
    expect(refusal(() => completeEndpointChanges(changes, publicOnly)).details).toMatchObject({
      fields: [{ name }],
      parameter_set: 'webhook_endpoint_update',
    })
  }
})

const meta = { eventId: 'evt_1', time: now, organizationId, environment: 'live' }
const eventOf = (reason: string) => ({
  type: 'WebhookEndpointDisabled',
  data: { organization_id: organizationId, endpoint_id: endpointId, reason, disabled_at: now },
})

test('disabling disables an active endpoint by its owner, once, and not while services need it', () => {
  const [decision, ...others] = update({ status: 'disabled' }, { active: 20 })
  expect(decision?.event).toEqual(eventOf('manual'))
  expect(others).toEqual([])
  expect(update({ status: 'disabled' }, { current: disabled })).toEqual([])
  expect(refusal(() => update({ status: 'disabled' }, { services: ['acme'] })).code).toBe(
    'request.conflict',
  )
})

describe('giving up', () => {
  const command = { reason: 'gone', attemptedAt: now - 5, eventId: 'evt_1', now } as const
  const giveUp = (row: EndpointRow | undefined) =>
    decideGivingUp({ endpoint: row, services: [] }, command)

  test('disables an active endpoint and says why', () => {
    expect(giveUp(endpoint)).toEqual([{ event: eventOf('gone'), meta }])
    expect(giveUp({ ...endpoint, target_since: now - 5 })).toHaveLength(1)
  })

  test('goes by where the endpoint is: its name, secret and subscriptions may have changed since', () => {
    expect(giveUp({ ...endpoint, updated_at: now - 1 })).toHaveLength(1)
  })

  test('leaves alone what its owner has enabled or moved since, what is disabled and what is unknown', () => {
    expect(giveUp({ ...endpoint, target_since: now - 4 })).toEqual([])
    expect(giveUp(disabled)).toEqual([])
    expect(giveUp(undefined)).toEqual([])
  })
})

describe('an endpoint that services are told of approvals at', () => {
  const seen = (reason: EndpointFlaggedReason, attemptedAt = now) => ({
    reason,
    attemptedAt,
    eventId: 'evt_1',
    now,
  })
  const given = (some: Partial<EndpointRow> = {}) => ({
    endpoint: { ...endpoint, ...some },
    services: ['acme'],
  })
  const typesOf = (decisions: { event: { type: string } }[]) =>
    decisions.map(({ event }) => event.type)

  test('is flagged and stays active', () => {
    const [decision] = decideGivingUp(given(), seen('failing'))
    expect(decision?.event).toEqual({
      type: 'WebhookEndpointFlagged',
      data: {
        organization_id: organizationId,
        endpoint_id: endpointId,
        reason: 'failing',
        flagged_at: now,
      },
    })
    // Or it could not be disabled for the same request once no service is told there.
    expect(decision?.meta.eventId).not.toBe('evt_1')
  })

  test('is flagged once, and again when it is worse', () => {
    expect(decideGivingUp(given({ flagged_reason: 'failing' }), seen('failing'))).toEqual([])
    expect(decideGivingUp(given({ flagged_reason: 'failing' }), seen('gone'))).toHaveLength(1)
    expect(decideGivingUp(given({ flagged_reason: 'gone' }), seen('failing'))).toEqual([])
  })

  test('is left alone when it was moved or enabled since, or is disabled', () => {
    expect(decideGivingUp(given({ target_since: now }), seen('gone', now - 1))).toEqual([])
    expect(decideGivingUp({ ...given(), endpoint: disabled }, seen('gone'))).toEqual([])
  })

  test('is disabled like any other once none is told there', () => {
    const alone = { ...given({ flagged_reason: 'gone' }), services: [] }
    expect(typesOf(decideGivingUp(alone, seen('failing')))).toEqual(['WebhookEndpointDisabled'])
  })

  test('has recovered when it was flagged', () => {
    const recover = (row: EndpointRow | undefined) => decideRecovery(row, { eventId: 'evt_1', now })
    expect(typesOf(recover({ ...endpoint, flagged_reason: 'gone' }))).toEqual([
      'WebhookEndpointRecovered',
    ])
    expect(recover(endpoint)).toEqual([])
    expect(recover(undefined)).toEqual([])
  })
})

const command = {
  sealedSecret: Buffer.from('sealed'),
  eventId: 'evt_1',
  now,
}
const state = { organization, endpoint, active: 1, services: [], has: false }

/** An endpoint whose secrets end then; the first has no end. */
function withSecrets(...ends: number[]) {
  const secrets: SigningSecretRow[] = [null, ...ends].map((expires_at) => ({
    sealed: Buffer.from(String(expires_at)),
    created_at: 1,
    expires_at,
  }))
  return { ...state, endpoint: { ...endpoint, secrets } }
}

test('a new secret signs from now on, the one before for 24 more hours', () => {
  expect(decideSecretRotation(state, command)).toEqual([
    {
      event: {
        type: 'WebhookEndpointSecretRotated',
        data: {
          organization_id: organizationId,
          endpoint_id: endpointId,
          signing_secret_sealed: Buffer.from('sealed'),
          rotated_at: now,
          previous_expires_at: now + overlapMs,
        },
      },
      meta: { eventId: 'evt_1', time: now, organizationId, environment: 'live' },
    },
  ])
  expect(overlapMs).toBe(24 * 60 * 60 * 1000)
})

test('at most three secrets sign; what has ended does not count', () => {
  expect(decideSecretRotation(withSecrets(now + 1), command)).toHaveLength(1)
  expect(decideSecretRotation(withSecrets(now + 1, now), command)).toHaveLength(1)
  expect(refusal(() => decideSecretRotation(withSecrets(now + 2, now + 1), command)).code).toBe(
    'request.conflict',
  )
})

test('again it does nothing, also when three secrets sign', () => {
  expect(decideSecretRotation({ ...withSecrets(now + 2, now + 1), has: true }, command)).toEqual([])
})

test('a disabled endpoint gets a new secret, so that a leaked one is gone before it is enabled', () => {
  expect(decideSecretRotation({ ...state, endpoint: disabled }, command)).toHaveLength(1)
})

test('it is 404 without the endpoint, 403 when the organization is not active', () => {
  expect(refusal(() => decideSecretRotation({ ...state, endpoint: undefined }, command)).code).toBe(
    'request.not_found',
  )
  expect(
    refusal(() => decideSecretRotation({ ...state, organization: suspended }, command)).code,
  ).toBe('auth.organization_inactive')
})
