import { headerOf } from '../http.ts'
import type { World } from '../world.ts'

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
  const { record, recordMalformed, read, own, live, test, receiver, cli } = world
  const { id: endpointId } = await read(
    'endpoint for approvals',
    `POST ${own}/webhooks/endpoints`,
    live,
    { name: 'Approvals', url: receiver.url('/sign-up'), event_types: ['gate.session.approved'] },
  )
  const create = `POST ${path}`
  const plain = {
    id: 'acme',
    name: 'Acme Mail',
    description: 'Mail for agents.',
    website,
    webhook_endpoint_id: endpointId,
  }
  await recordMalformed('create service', create, () => live)
  await refusedServices(world, plain)
  const once = { ...live, 'idempotency-key': 'service' }
  await record('create service', create, once, { ...plain, ...full })
  await record('create service, repeated', create, once, { ...plain, ...full })
  const send = (what: string, changes: object, headers = live) =>
    record(`create ${what}`, create, headers, { ...plain, ...changes })
  await send('service again', {})
  await send('service that is built in', { id: 'tidegate' })
  await send('plain service', { id: 'acme-plain' })
  await send('service whose variable is taken', { id: 'acme_plain' })
  await send('test service with a live endpoint', { id: 'other' }, test)
  await reads(world)
  await changedServices(world)
  await domain(world)
  await cli('gate', 'verify', 'acme')
  await record('verified service', `GET ${path}/acme`, live)
  await record('registry entry of a verified service', 'GET /v1/gate/registry/acme')
  await ended(world, endpointId)
  return { id: 'acme', endpointId }
}

async function refusedServices(
  { recordEach, live }: World,
  plain: { id: string; webhook_endpoint_id: string },
): Promise<void> {
  const variable = { name: 'Key', key: 'ACME_KEY', secret: true }
  const variables = Array.from({ length: 51 }, (_, i) => ({ ...variable, key: `KEY_${i}` }))
  const sdk = { label: 'Node', install: 'npm install acme', url: website }
  const changed = (changes: object) => ({ ...plain, ...changes })
  const sdks = (count: number, one: object = sdk) =>
    changed({ sdks: Array.from({ length: count }, () => one) })
  await recordEach('create service', `POST ${path}`, live, {
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
    'too many variables': changed({ env_vars: variables }),
    'variable with a hyphen': changed({ env_vars: [{ ...variable, key: 'ACME-KEY' }] }),
    'variable that decides what runs': changed({ env_vars: [{ ...variable, key: 'PATH' }] }),
    'variable of Gate': changed({ env_vars: [{ ...variable, key: 'ACME_GATE_AGENT_TOKEN' }] }),
    'variable twice': changed({ env_vars: [variable, { ...variable, key: 'acme_key' }] }),
    'variable without a name': changed({ env_vars: [{ ...variable, name: '' }] }),
    'too many SDKs': sdks(21),
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
    'more than can be shown': sdks(20, { ...sdk, install: 'x'.repeat(1000) }),
  })
}

async function reads({ record, live, test }: World): Promise<void> {
  await record('services', `GET ${path}`, live)
  await record('services of the test environment', `GET ${path}`, test)
  await record('services with an offset', `GET ${path}?offset=1`, live)
  await record('service', `GET ${path}/acme`, live)
  await record('service by a test key', `GET ${path}/acme`, test)
  const registry = '/v1/gate/registry'
  const etag = headerOf(await record('registry', `GET ${registry}`), 'etag') ?? '"none"'
  await record('registry that is known', `GET ${registry}`, { 'if-none-match': etag })
  await record('registry with an offset', `GET ${registry}?offset=1`)
  for (const id of ['acme', 'acme-plain', 'tidegate', 'nobody', 'x', 'ACME']) {
    await record(`registry entry ${id}`, `GET ${registry}/${id}`)
    await record(`managed service ${id}`, `GET ${path}/${id}`, live)
  }
}

async function changedServices(world: World): Promise<void> {
  const { record, recordEach, recordMalformed, live, test } = world
  const update = `PATCH ${path}/acme`
  await recordMalformed('update service', update, () => live)
  await recordEach('update service', update, live, {
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
  })
  await record('update service by a test key', update, test, { name: 'x' })
  await record('update unknown service', `PATCH ${path}/nobody`, live, { name: 'x' })
  await record('update malformed service', `PATCH ${path}/x`, live, { name: 'x' })
}

async function ended({ record, own, live, test }: World, endpointId: string): Promise<void> {
  const endpoint = `${own}/webhooks/endpoints/${endpointId}`
  const body = { event_types: ['session.result.persisted'] }
  await record('endpoint of a service is disabled', `DELETE ${endpoint}`, live)
  await record('endpoint of a service is told of other things', `PATCH ${endpoint}`, live, body)
  const service = `${path}/acme-plain`
  await record('disable service by a test key', `DELETE ${service}`, test)
  await record('disable service with a body', `DELETE ${service}`, live, { now: true })
  await record('disable service', `DELETE ${service}`, live)
  await record('disable service again', `DELETE ${service}`, live)
  await record('disabled service is renamed', `PATCH ${service}`, live, { name: 'x' })
  await record('disable unknown service', `DELETE ${path}/nobody`, live)
  await record('disabled service', `GET ${service}`, live)
  await record('registry without it', 'GET /v1/gate/registry')
}

/** Nobody holds the domains of examples, so none is found to be verified. */
async function domain({ record, live, test }: World): Promise<void> {
  await record('domain', `GET ${path}/acme/domain`, live)
  await record('domain by a test key', `GET ${path}/acme/domain`, test)
  await record('verify domain by a test key', `POST ${path}/acme/domain/verify`, test)
}
