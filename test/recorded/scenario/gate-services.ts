import type { World } from '../world.ts'
import { withBodies, withoutBody } from './many.ts'

const path = '/v1/gate/services'
const website = 'https://acme.example'

const full = {
  discoverable: true,
  dashboard_login_url: 'https://acme.example/auth/gate?from=agents',
  docs_url: 'https://acme.example/docs',
  env_vars: [{ name: 'API key', key: 'ACME_API_KEY', secret: true }],
  sdks: [{ label: 'Node', install: 'npm install acme', url: 'https://acme.example/node' }],
  branding: {
    logo_url: 'https://acme.example/logo.svg',
    primary_color: '#0b6e7c',
    ascii_art: ' /\\\n/  \\',
  },
  consent: { terms_url: 'https://acme.example/terms', privacy_url: 'https://acme.example/privacy' },
}

export interface Service {
  /** Open to signups; it answers approvals with credentials. */
  id: string
  /** Subscribed to approvals; disabled together with the service. */
  endpointId: string
}

/** Services that agents can sign up for: registered, changed, listed, disabled. */
export async function gateServices(world: World): Promise<Service> {
  const { record, read, own, live, test, receiver, cli } = world
  const endpoint = { method: 'POST', path: `${own}/webhooks/endpoints`, headers: live }
  const event_types = ['gate.session.approved']
  const { id: endpointId } = await read({
    name: 'endpoint for approvals',
    ...endpoint,
    body: { name: 'Approvals', url: receiver.url('/sign-up'), event_types },
  })
  const create = { method: 'POST', path, headers: live }
  const plain = {
    id: 'acme',
    name: 'Acme Mail',
    description: 'Mail for agents.',
    website,
    webhook_endpoint_id: endpointId,
  }
  await withoutBody(world, { name: 'create service', ...create })
  await refusedServices(world, plain)
  const headers = { ...live, 'idempotency-key': 'service' }
  await record({ name: 'create service', ...create, headers, body: { ...plain, ...full } })
  await record({
    name: 'create service, repeated',
    ...create,
    headers,
    body: { ...plain, ...full },
  })
  await record({ name: 'create service again', ...create, body: plain })
  await record({
    name: 'create service that is built in',
    ...create,
    body: { ...plain, id: 'tidegate' },
  })
  await record({ name: 'create plain service', ...create, body: { ...plain, id: 'acme-plain' } })
  await record({
    name: 'create service whose variable is taken',
    ...create,
    body: { ...plain, id: 'acme_plain' },
  })
  await record({
    name: 'create test service with a live endpoint',
    ...create,
    headers: test,
    body: { ...plain, id: 'other' },
  })
  await reads(world)
  await changedServices(world)
  await domain(world)
  await cli('gate', 'verify', 'acme')
  await record({ name: 'verified service', method: 'GET', path: `${path}/acme`, headers: live })
  await record({
    name: 'registry entry of a verified service',
    method: 'GET',
    path: '/v1/gate/registry/acme',
  })
  await ended(world, endpointId)
  return { id: 'acme', endpointId }
}

async function refusedServices(
  world: World,
  plain: { id: string; webhook_endpoint_id: string },
): Promise<void> {
  const variable = { name: 'Key', key: 'ACME_KEY', secret: true }
  const sdk = { label: 'Node', install: 'npm install acme', url: website }
  const changed = (changes: object) => ({ ...plain, ...changes })
  await withBodies(
    world,
    { name: 'create service', method: 'POST', path, headers: world.live },
    {
      'nothing in it': {},
      'no id': changed({ id: undefined }),
      'short id': changed({ id: 'ab' }),
      'id in upper case': changed({ id: 'Acme' }),
      'id of another type': changed({ id: 7 }),
      'no name': changed({ name: undefined }),
      'blank name': changed({ name: ' ' }),
      'long name': changed({ name: 'x'.repeat(101) }),
      'name that turns around': changed({ name: 'a\u202eb' }),
      'long description': changed({ description: 'x'.repeat(1001) }),
      'description of many lines': changed({ description: 'x\n'.repeat(51) }),
      'website of http': changed({ website: 'http://acme.example' }),
      'website with a user': changed({ website: 'https://user@acme.example' }),
      'long website': changed({ website: `https://acme.example/${'x'.repeat(2048)}` }),
      'no endpoint': changed({ webhook_endpoint_id: undefined }),
      'malformed endpoint': changed({ webhook_endpoint_id: 'we_1' }),
      'unknown endpoint': changed({ webhook_endpoint_id: `we_${'0'.repeat(32)}` }),
      'discoverable of another type': changed({ discoverable: 'yes' }),
      'login URL that is none': changed({ dashboard_login_url: 'acme' }),
      'documentation URL that is none': changed({ docs_url: 'acme' }),
      'too many variables': changed({
        env_vars: Array.from({ length: 51 }, (_, i) => ({ ...variable, key: `KEY_${i}` })),
      }),
      'variable with a hyphen': changed({ env_vars: [{ ...variable, key: 'ACME-KEY' }] }),
      'variable that decides what runs': changed({ env_vars: [{ ...variable, key: 'PATH' }] }),
      'variable of Gate': changed({ env_vars: [{ ...variable, key: 'ACME_GATE_AGENT_TOKEN' }] }),
      'variable twice': changed({ env_vars: [variable, { ...variable, key: 'acme_key' }] }),
      'variable without a name': changed({ env_vars: [{ ...variable, name: '' }] }),
      'too many SDKs': changed({ sdks: Array.from({ length: 21 }, () => sdk) }),
      'SDK without a label': changed({ sdks: [{ ...sdk, label: '' }] }),
      'SDK of many lines': changed({ sdks: [{ ...sdk, install: 'x\n'.repeat(60) }] }),
      'SDK without a URL': changed({ sdks: [{ ...sdk, url: 'acme' }] }),
      'colour that is none': changed({ branding: { primary_color: 'red' } }),
      'logo that is none': changed({ branding: { logo_url: 'logo.svg' } }),
      'drawing that is too long': changed({ branding: { ascii_art: 'x'.repeat(4001) } }),
      'verified by itself': changed({ branding: { verified: true } }),
      'terms that are none': changed({ consent: { terms_url: 'terms' } }),
      'privacy that is none': changed({ consent: { privacy_url: 'privacy' } }),
      'unknown member': changed({ price: 5 }),
      'more than can be shown': changed({
        sdks: Array.from({ length: 20 }, () => ({ ...sdk, install: 'x'.repeat(1000) })),
      }),
    },
  )
}

async function reads({ record, live, test }: World): Promise<void> {
  await record({ name: 'services', method: 'GET', path, headers: live })
  await record({ name: 'services of the test environment', method: 'GET', path, headers: test })
  await record({
    name: 'services with an offset',
    method: 'GET',
    path: `${path}?offset=1`,
    headers: live,
  })
  await record({ name: 'service', method: 'GET', path: `${path}/acme`, headers: live })
  await record({
    name: 'service by a test key',
    method: 'GET',
    path: `${path}/acme`,
    headers: test,
  })
  const registry = '/v1/gate/registry'
  const first = await record({ name: 'registry', method: 'GET', path: registry })
  const at = first.rawHeaders.findIndex((name) => name.toLowerCase() === 'etag')
  const headers = { 'if-none-match': first.rawHeaders[at + 1] ?? '"none"' }
  await record({ name: 'registry that is known', method: 'GET', path: registry, headers })
  await record({ name: 'registry with an offset', method: 'GET', path: `${registry}?offset=1` })
  for (const id of ['acme', 'acme-plain', 'tidegate', 'nobody', 'x', 'ACME']) {
    await record({ name: `registry entry ${id}`, method: 'GET', path: `${registry}/${id}` })
    await record({
      name: `managed service ${id}`,
      method: 'GET',
      path: `${path}/${id}`,
      headers: live,
    })
  }
}

async function changedServices(world: World): Promise<void> {
  const { record, live, test } = world
  const update = { method: 'PATCH', path: `${path}/acme`, headers: live }
  await withoutBody(world, { name: 'update service', ...update })
  await withBodies(
    world,
    { name: 'update service', ...update },
    {
      'nothing in it': {},
      id: { id: 'other' },
      'blank name': { name: ' ' },
      'another name': { name: 'Acme Post' },
      'no login URL': { dashboard_login_url: null },
      'login URL': { dashboard_login_url: full.dashboard_login_url },
      'no documentation': { docs_url: null },
      'no variables': { env_vars: [] },
      variables: { env_vars: full.env_vars },
      'no branding': { branding: {} },
      branding: { branding: full.branding },
      'name that is null': { name: null },
      'unknown endpoint': { webhook_endpoint_id: `we_${'0'.repeat(32)}` },
      'the same': { name: 'Acme Post' },
    },
  )
  await record({
    name: 'update service by a test key',
    ...update,
    headers: test,
    body: { name: 'x' },
  })
  await record({
    name: 'update unknown service',
    ...update,
    path: `${path}/nobody`,
    body: { name: 'x' },
  })
  await record({
    name: 'update malformed service',
    ...update,
    path: `${path}/x`,
    body: { name: 'x' },
  })
}

async function ended({ record, own, live, test }: World, endpointId: string): Promise<void> {
  const endpoint = { path: `${own}/webhooks/endpoints/${endpointId}`, headers: live }
  const body = { event_types: ['session.result.persisted'] }
  await record({ name: 'endpoint of a service is disabled', method: 'DELETE', ...endpoint })
  await record({
    name: 'endpoint of a service is told of other things',
    method: 'PATCH',
    ...endpoint,
    body,
  })
  const disable = { method: 'DELETE', path: `${path}/acme-plain`, headers: live }
  await record({ name: 'disable service by a test key', ...disable, headers: test })
  await record({ name: 'disable service with a body', ...disable, body: { now: true } })
  await record({ name: 'disable service', ...disable })
  await record({ name: 'disable service again', ...disable })
  await record({
    name: 'disabled service is renamed',
    ...disable,
    method: 'PATCH',
    body: { name: 'x' },
  })
  await record({ name: 'disable unknown service', ...disable, path: `${path}/nobody` })
  await record({ name: 'disabled service', method: 'GET', path: disable.path, headers: live })
  await record({ name: 'registry without it', method: 'GET', path: '/v1/gate/registry' })
}

/** Nobody holds the domains of examples, so none is found to be verified. */
async function domain({ record, live, test }: World): Promise<void> {
  const at = `${path}/acme/domain`
  await record({ name: 'domain', method: 'GET', path: at, headers: live })
  await record({ name: 'domain by a test key', method: 'GET', path: at, headers: test })
  await record({
    name: 'verify domain by a test key',
    method: 'POST',
    path: `${at}/verify`,
    headers: test,
  })
}
