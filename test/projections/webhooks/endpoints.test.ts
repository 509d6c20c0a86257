import { expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import {
  countActiveEndpoints,
  findEndpoint,
  findEndpoints,
  listEndpoints,
  subscribedEndpoints,
} from '../../../projections/webhooks/queries.ts'
import { endpointCreated, org, recorded, start, useWebhooksWorld, we } from './events.ts'

const world = useWebhooksWorld()
const scope = { organizationId: org(1), environment: 'live' } as const
const find = (n = 1) => findEndpoint(world.database.pool, { ...scope, endpointId: we(n) })
const ids = (rows: { id: string }[]) => rows.map(({ id }) => id)

const about = (n: number) => ({ organization_id: org(1), endpoint_id: we(n) })
const renamed = (name: string): DomainEvent => ({
  type: 'WebhookEndpointRenamed',
  data: { ...about(1), name, renamed_at: start + 100 },
})
const disabled = (n: number, reason: 'manual' | 'failing' | 'gone' = 'failing'): DomainEvent => ({
  type: 'WebhookEndpointDisabled',
  data: { ...about(n), reason, disabled_at: start + 200 },
})
const enabled = (n: number): DomainEvent => ({
  type: 'WebhookEndpointEnabled',
  data: { ...about(n), enabled_at: start + 300 },
})
const rotated = (byte: number, at: number, previousExpiresAt: number): DomainEvent => ({
  type: 'WebhookEndpointSecretRotated',
  data: {
    ...about(1),
    signing_secret_sealed: Buffer.from([byte]),
    rotated_at: at,
    previous_expires_at: previousExpiresAt,
  },
})

test('an endpoint is created', async () => {
  await world.given(
    endpointCreated(1, {
      name: 'Shop\0',
      event_types: [
        'session.result.persisted',
        'of.a.later.version',
        'session.fingerprint.calculated',
      ],
    }),
  )
  expect(await find()).toEqual({
    id: we(1),
    organization_id: org(1),
    environment: 'live',
    name: 'Shop\ufffd',
    url: 'https://hooks.example/1',
    event_types: ['session.result.persisted', 'session.fingerprint.calculated'],
    status: 'active',
    disabled_reason: null,
    flagged_reason: null,
    secrets: [{ sealed: Buffer.from([0, 255, 1]), created_at: start + 1, expires_at: null }],
    created_at: start + 1,
    updated_at: start + 1,
    target_since: start + 1,
  })
})

test('an endpoint is renamed, moved and subscribed to other types', async () => {
  await world.given(
    endpointCreated(1),
    renamed('New'),
    {
      type: 'WebhookEndpointMoved',
      data: { ...about(1), url: 'https://b.example/', moved_at: start + 110 },
    },
    {
      type: 'WebhookEndpointSubscriptionsChanged',
      data: { ...about(1), event_types: ['gate.session.approved'], changed_at: start + 120 },
    },
  )
  expect(await find()).toMatchObject({
    name: 'New',
    url: 'https://b.example/',
    event_types: ['gate.session.approved'],
    created_at: start + 1,
    updated_at: start + 120,
    target_since: start + 110,
  })
})

test('an endpoint is disabled with its reason, and enabled again', async () => {
  await world.given(endpointCreated(1), disabled(1, 'gone'))
  expect(await find()).toMatchObject({
    status: 'disabled',
    disabled_reason: 'gone',
    updated_at: start + 200,
  })
  await world.given(enabled(1))
  expect(await find()).toMatchObject({
    status: 'active',
    disabled_reason: null,
    updated_at: start + 300,
    target_since: start + 300,
  })
})

test.each<[string, DomainEvent]>([
  [
    'a success',
    { type: 'WebhookEndpointRecovered', data: { ...about(1), recovered_at: start + 200 } },
  ],
  [
    'a move',
    {
      type: 'WebhookEndpointMoved',
      data: { ...about(1), url: 'https://b.example/', moved_at: start },
    },
  ],
  ['an end', disabled(1)],
])('a flag stays until %s', async (_, event) => {
  const data = { ...about(1), reason: 'gone', flagged_at: start + 150 } as const
  await world.given(endpointCreated(1), { type: 'WebhookEndpointFlagged', data }, renamed('New'))
  expect(await find()).toMatchObject({
    status: 'active',
    flagged_reason: 'gone',
    target_since: start + 1,
  })
  await world.given(event)
  expect(await find()).toMatchObject({ flagged_reason: null })
})

test('a rotation puts the new secret first; earlier ones keep their end and go once it has passed', async () => {
  await world.given(endpointCreated(1), rotated(10, start + 100, start + 500))
  const secrets = async () =>
    (await find())?.secrets.map(({ sealed, created_at, expires_at }) => [
      sealed.at(-1),
      created_at - start,
      expires_at === null ? null : expires_at - start,
    ])
  expect(await secrets()).toEqual([
    [10, 100, null],
    [1, 1, 500],
  ])
  await world.given(rotated(11, start + 499, start + 700))
  expect(await secrets()).toEqual([
    [11, 499, null],
    [10, 100, 700],
    [1, 1, 500],
  ])
  await world.given(rotated(12, start + 500, start + 500))
  expect(await secrets()).toEqual([
    [12, 500, null],
    [10, 100, 700],
  ])
})

test('what happens to an endpoint that was never created, or is created again, changes nothing', async () => {
  await world.given(renamed('New'), disabled(1))
  expect(await find()).toBeUndefined()
  await world.given(endpointCreated(1), endpointCreated(1, { name: 'Other' }))
  expect(await find()).toMatchObject({ name: 'Endpoint 1', status: 'active' })
})

test('a repeated event does not bring back what a later one changed', async () => {
  const [one, two] = [recorded(renamed('One'), { id: 'a' }), recorded(renamed('Two'), { id: 'b' })]
  await world.apply([recorded(endpointCreated(1)), one, two, one])
  expect(await find()).toMatchObject({ name: 'Two' })
  await world.apply([one])
  expect(await find()).toMatchObject({ name: 'Two' })
})

test('endpoints are found and listed in their organization and environment only, newest first, ties by id', async () => {
  const same = { created_at: start + 50 }
  await world.given(
    endpointCreated(1),
    endpointCreated(2, same),
    endpointCreated(3, same),
    endpointCreated(4, { environment: 'test' }),
    endpointCreated(5, { organization_id: org(2) }),
    disabled(3),
  )
  const { pool } = world.database
  const listed = async (more: object = {}) =>
    ids((await listEndpoints(pool, { ...scope, ...more })).rows)
  expect(await listed()).toEqual([we(3), we(2), we(1)])
  expect(await listed({ environment: 'test' })).toEqual([we(4)])
  expect(await listed({ organizationId: org(2) })).toEqual([we(5)])
  expect(await countActiveEndpoints(pool, org(1))).toBe(3)
  expect(await countActiveEndpoints(pool, org(9))).toBe(0)
  expect(await find(4)).toBeUndefined()
  expect(await find(5)).toBeUndefined()
  expect(await find(3)).toMatchObject({ id: we(3), status: 'disabled' })
  const found = await findEndpoints(pool, [we(5), we(4), we(9)])
  expect([...found.keys()].toSorted()).toEqual([we(4), we(5)])
  expect(found.get(we(5))).toMatchObject({ id: we(5), organization_id: org(2) })
  expect(await findEndpoints(pool, [])).toEqual(new Map())
})

test('a list has all active endpoints and the newest disabled ones, 200 in all, newest first', async () => {
  const numbers = Array.from({ length: 230 }, (_, i) => i + 1)
  const isActive = (n: number) => n <= 10 || n === 150
  await world.given(
    ...numbers.map((n) => endpointCreated(n)),
    ...numbers.filter((n) => !isActive(n)).map((n) => disabled(n)),
    ...[500, 501].map((n) => endpointCreated(n, { environment: 'test' })),
  )
  const listed = numbers.filter((n) => n <= 10 || n > 230 - 190)
  expect(listed).toHaveLength(200)
  const { rows, hasMore } = await listEndpoints(world.database.pool, scope)
  expect(ids(rows)).toEqual(listed.toReversed().map(we))
  expect(hasMore).toBe(true)
  expect(await countActiveEndpoints(world.database.pool, org(1))).toBe(13)
})

test('a list of just 200 endpoints is all of them', async () => {
  const numbers = Array.from({ length: 200 }, (_, i) => i + 1)
  await world.given(...numbers.map((n) => endpointCreated(n)), ...numbers.map((n) => disabled(n)))
  const { rows, hasMore } = await listEndpoints(world.database.pool, scope)
  expect([rows.length, hasMore]).toEqual([200, false])
})

test('subscribed are the active endpoints of the organization and environment that want the type', async () => {
  const fingerprints = ['session.fingerprint.calculated']
  await world.given(
    endpointCreated(2),
    endpointCreated(1),
    endpointCreated(3, { event_types: fingerprints }),
    endpointCreated(4, { environment: 'test' }),
    endpointCreated(5, { organization_id: org(2) }),
    endpointCreated(6),
    disabled(6),
  )
  const type = 'session.result.persisted' as const
  const wanted = [
    { ...scope, type },
    { ...scope, type: 'session.fingerprint.calculated' as const },
    { ...scope, organizationId: org(3), type },
  ]
  const found = await subscribedEndpoints(world.database.pool, wanted)
  expect(
    new Map([...found].map(([name, endpoints]) => [name, endpoints.map(({ id }) => id)])),
  ).toEqual(
    new Map([
      [`${org(1)} live ${type}`, [we(1), we(2)]],
      [`${org(1)} live session.fingerprint.calculated`, [we(3)]],
      [`${org(3)} live ${type}`, []],
    ]),
  )
  expect(await subscribedEndpoints(world.database.pool, [])).toEqual(new Map())
})
