import { describe, expect, test } from 'vitest'
import { derivedId } from '../../../../infra/ids.ts'
import {
  type CreateEndpoint,
  completeEndpointRequest,
  createEndpoint,
  type EndpointRequest,
} from '../../../../services/webhooks/endpoints/create-endpoint.ts'
import { refusal } from '../../organizations/given.ts'
import { endpoint, endpointId, now, organization, organizationId, publicOnly, suspended } from './given.ts'

const command: CreateEndpoint = {
  organizationId,
  environment: 'test',
  endpointId,
  spec: { name: 'Shop', url: 'https://shop.example/hooks', event_types: ['session.result.persisted'] },
  sealedSecret: Buffer.from('sealed'),
  now,
}
const event = {
  type: 'WebhookEndpointCreated',
  data: {
    organization_id: organizationId,
    endpoint_id: endpointId,
    environment: 'test',
    ...command.spec,
    signing_secret_sealed: Buffer.from('sealed'),
    created_at: now,
  },
}
const meta = {
  eventId: derivedId('evt', endpointId, 'created'),
  time: now,
  organizationId,
  environment: 'test',
}

const none = { organization, endpoint: undefined, active: 0, services: [] }

describe('creating', () => {
  test('makes an endpoint in the environment of the key', () => {
    expect(createEndpoint(none, command)).toEqual([{ event, meta }])
  })

  test('is the twentieth active endpoint at most', () => {
    expect(createEndpoint({ ...none, active: 19 }, command)).toHaveLength(1)
    expect(refusal(() => createEndpoint({ ...none, active: 20 }, command)).code).toBe('request.conflict')
  })

  test('again does nothing, also when there are as many as there can be', () => {
    expect(createEndpoint({ ...none, endpoint, active: 20 }, command)).toEqual([])
  })

  test('needs an active organization', () => {
    const codeOf = (state: typeof organization | undefined) =>
      refusal(() => createEndpoint({ ...none, organization: state }, command)).code
    expect(codeOf(undefined)).toBe('request.not_found')
    expect(codeOf(suspended)).toBe('auth.organization_inactive')
  })
})

describe('a request', () => {
  const request: EndpointRequest = {
    name: ' Shop ',
    url: 'https://shop.example/hooks?a=1',
    eventTypes: ['session.result.persisted', 'session.fingerprint.calculated', 'session.result.persisted'],
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
    ['event_types', 'required', { eventTypes: [] }],
    ['event_types.1', 'invalid_value', { eventTypes: ['session.result.persisted', 'session.opened'] }],
    ['event_types.0', 'invalid_value', { eventTypes: ['webhook.test'] }],
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
