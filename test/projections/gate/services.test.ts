import { describe, expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import {
  countServices,
  findService,
  findServiceIdsByEndpoint,
  findVerifiedNamesOfOthers,
  isServiceEventApplied,
  listServices,
} from '../../../projections/gate/queries.ts'
import type { GateServiceDefinition, GateServiceRegistered } from '../../../schemas/events.ts'
import { id } from '../world-events.ts'
import { recorded, useGateWorld } from './events.ts'

const world = await useGateWorld()
const org = (n: number) => id('org', n)
const about = { service_id: 'acme-mail', organization_id: org(1), environment: 'live' } as const
const scope = { organizationId: org(1), environment: 'live' } as const

const definition: GateServiceDefinition = {
  name: 'Acme \0 Mail',
  description: 'Mail for agents.',
  website: 'https://acme.example',
  discoverable: true,
  webhook_endpoint_id: 'we_1',
  dashboard_login_url: 'https://acme.example/auth/gate',
  docs_url: null,
  env_vars: [{ name: 'API key', key: 'ACME_API_KEY', secret: true }],
  sdks: [{ label: 'npm', install: 'npm i acme', url: 'https://acme.example/sdk' }],
  branding: {
    logo_url: 'https://acme.example/a.svg',
    primary_color: '#abc',
    secondary_color: null,
    ascii_art: null,
  },
  consent: { terms_url: 'https://acme.example/terms', privacy_url: null },
  claim_required: false,
  minimum_verdict: null,
}

function registered(overrides: Partial<GateServiceRegistered> = {}): DomainEvent {
  return {
    type: 'GateServiceRegistered',
    data: { ...about, definition, registered_at: 10, ...overrides },
  }
}
const changed = (changes: Partial<GateServiceDefinition>): DomainEvent => ({
  type: 'GateServiceChanged',
  data: { ...about, definition: { ...definition, ...changes }, changed_at: 20 },
})
const disabled = (service_id = 'acme-mail'): DomainEvent => ({
  type: 'GateServiceDisabled',
  data: { ...about, service_id, disabled_at: 30 },
})
const verified: DomainEvent = { type: 'GateServiceVerified', data: { ...about, verified_at: 15 } }
const withdrawn: DomainEvent = {
  type: 'GateServiceVerificationWithdrawn',
  data: { ...about, withdrawn_at: 16 },
}
const find = (serviceId = 'acme-mail') => findService(world.pool, serviceId)
const ids = (rows: { id: string }[]) => rows.map(({ id }) => id)

const row = {
  id: 'acme-mail',
  organization_id: org(1),
  environment: 'live',
  status: 'active',
  verified: false,
  verified_domain: null,
  definition,
  created_at: 10,
  updated_at: 10,
}

const domain: DomainEvent = {
  type: 'GateServiceDomainVerified',
  data: { ...about, domain: 'acme.example', proof: 'dns', verified_at: 15 },
}

describe('a service', () => {
  test('is registered with any characters in its texts', async () => {
    await world.given(registered())
    expect(await find()).toEqual(row)
    expect(await find('other')).toBeUndefined()
  })

  test('is updated as a whole, and disabled', async () => {
    await world.given(registered())
    await world.given(changed({ env_vars: [], discoverable: false }), disabled())
    const described = { ...definition, env_vars: [], discoverable: false }
    const ended = { status: 'disabled', definition: described, updated_at: 30 }
    expect(await find()).toEqual({ ...row, ...ended })
  })

  test('is registered only once', async () => {
    const again = registered({ organization_id: org(2) })
    await world.given(registered(), changed({ name: 'Post' }), again)
    expect(await find()).toMatchObject({ organization_id: org(1), definition: { name: 'Post' } })
  })

  test('is not created by events other than its registration', async () => {
    await world.given(changed({}), verified, withdrawn, disabled())
    expect(await find()).toBeUndefined()
  })

  test('a replayed event does not restore an earlier state', async () => {
    const first = recorded(changed({ name: 'First' }), { id: 'evt_first' })
    await world.given(registered())
    await world.apply([first, recorded(changed({ name: 'Second' }))])
    await world.apply([first])
    expect(await find()).toMatchObject({ definition: { name: 'Second' } })
    expect(await isServiceEventApplied(world.pool, 'evt_first')).toBe(true)
    expect(await isServiceEventApplied(world.pool, 'evt_third')).toBe(false)
  })
})

describe('verification', () => {
  test.each<[string, DomainEvent[], object]>([
    ['of the domain is set', [domain], { verified_domain: 'acme.example', updated_at: 15 }],
    [
      'of the domain survives other changes',
      [domain, changed({ name: 'Post' })],
      { verified_domain: 'acme.example' },
    ],
    [
      'of the domain ends when the website changes',
      [domain, changed({ website: 'https://acme.example/new' })],
      { verified_domain: null },
    ],
    ['of the domain is withdrawn', [domain, withdrawn], { verified_domain: null }],
    ['is set', [verified], { verified: true, updated_at: 15 }],
    ['is withdrawn', [verified, withdrawn], { verified: false, updated_at: 16 }],
    ['survives other changes', [verified, changed({ description: 'Mail.' })], { verified: true }],
    ['ends when the name changes', [verified, changed({ name: 'Post' })], { verified: false }],
    ['survives disabling', [verified, disabled()], { verified: true, status: 'disabled' }],
  ])('%s', async (_, events, state) => {
    await world.given(registered(), ...events)
    expect(await find()).toMatchObject(state)
  })

  test('protects the names of active services against other organizations', async () => {
    const names = (n: number) => findVerifiedNamesOfOthers(world.pool, org(n))
    await world.given(registered(), domain)
    expect(await names(2)).toEqual([])
    await world.given(verified)
    expect([await names(2), await names(1)]).toEqual([['Acme \0 Mail'], []])
    await world.given(disabled())
    expect(await names(2)).toEqual([])
  })

  test.each<[Partial<GateServiceDefinition>, boolean]>([
    [
      { description: 'Other', docs_url: 'https://acme.example/d', webhook_endpoint_id: 'we_2' },
      true,
    ],
    [{ branding: { ...definition.branding, primary_color: null } }, true],
    [{ name: 'Other' }, false],
    [{ website: 'https://other.example' }, false],
    [{ dashboard_login_url: 'https://other.example/in' }, false],
    [{ branding: { ...definition.branding, logo_url: null } }, false],
  ])('after a change of %j it is %s', async (changes, stays) => {
    await world.given(registered(), verified)
    await world.given(changed(changes))
    expect(await find()).toMatchObject({ verified: stays })
    await world.given(changed({}))
    expect(await find()).toMatchObject({ verified: stays })
  })
})

test('lists the services of a key and of an endpoint', async () => {
  await world.given(
    registered({ service_id: 'b-hidden', definition: { ...definition, discoverable: false } }),
    registered({ service_id: 'a-second', registered_at: 20 }),
    registered({ service_id: 'c-ended', registered_at: 30 }),
    registered({ service_id: 'd-test', environment: 'test' }),
    registered({
      service_id: 'e-other',
      organization_id: org(2),
      definition: { ...definition, webhook_endpoint_id: 'we_2' },
    }),
    disabled('c-ended'),
  )
  const { pool } = world
  expect(ids(await listServices(pool, scope))).toEqual(['c-ended', 'a-second', 'b-hidden'])
  expect(ids(await listServices(pool, { ...scope, environment: 'test' }))).toEqual(['d-test'])
  expect(await countServices(pool, org(1))).toBe(4)
  expect(await countServices(pool, org(3))).toBe(0)
  expect(await findServiceIdsByEndpoint(pool, 'we_1')).toEqual(['a-second', 'b-hidden', 'd-test'])
})
