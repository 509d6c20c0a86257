import { expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import {
  countActiveEndpoints,
  findEndpoint,
  findEndpoints,
  findSubscribedEndpoints,
  listEndpoints,
} from '../../../projections/webhooks/queries.ts'
import {
  disabled,
  enabled,
  endpointCreated,
  flagged,
  moved,
  org,
  recorded,
  recovered,
  renamed,
  rotated,
  start,
  subscribed,
  useWebhooksWorld,
  we,
} from './events.ts'

const world = await useWebhooksWorld()
const scope = { organizationId: org(1), environment: 'live' } as const
const find = (n = 1) => findEndpoint(world.pool, { ...scope, endpointId: we(n) })
const ids = (rows: { id: string }[]) => rows.map(({ id }) => id)
const rename = (name: string) => renamed(1, { name, renamed_at: start + 100 })
const disable = (n: number) => disabled(n, { reason: 'gone', disabled_at: start + 200 })
const move = moved(1, { url: 'https://b.example/', moved_at: start + 110 })

test('an endpoint is created', async () => {
  const types = ['session.result.persisted', 'session.fingerprint.calculated']
  const event_types = [types[0] ?? '', 'of.a.later.version', types[1] ?? '']
  await world.given(endpointCreated(1, { name: 'Shop\0', event_types }))
  expect(await find()).toEqual({
    id: we(1),
    organization_id: org(1),
    environment: 'live',
    name: 'Shop\ufffd',
    url: 'https://hooks.example/1',
    event_types: types,
    filter: null,
    status: 'active',
    disabled_reason: null,
    flagged_reason: null,
    secrets: [{ sealed: Buffer.from([0, 255, 1]), created_at: start + 1, expires_at: null }],
    created_at: start + 1,
    updated_at: start + 1,
    target_since: start + 1,
  })
})

test.each<[string, DomainEvent[], object]>([
  ['renamed', [rename('New')], { name: 'New', updated_at: start + 100, target_since: start + 1 }],
  [
    'moved',
    [move],
    { url: 'https://b.example/', updated_at: start + 110, target_since: start + 110 },
  ],
  [
    'subscribed to other types',
    [
      subscribed(1, {
        event_types: ['gate.session.approved'],
        filter: { verdicts: ['bot'], min_risk_score: 60 },
        changed_at: start + 120,
      }),
    ],
    {
      event_types: ['gate.session.approved'],
      filter: { verdicts: ['bot'], min_risk_score: 60 },
      updated_at: start + 120,
      target_since: start + 1,
    },
  ],
  [
    'disabled with its reason',
    [disable(1)],
    { status: 'disabled', disabled_reason: 'gone', updated_at: start + 200 },
  ],
  [
    'enabled again',
    [disable(1), enabled(1, { enabled_at: start + 300 })],
    { status: 'active', disabled_reason: null, updated_at: start + 300, target_since: start + 300 },
  ],
])('an endpoint is %s', async (_, events, changes) => {
  await world.given(endpointCreated(1), ...events)
  expect(await find()).toMatchObject(changes)
})

test.each<[string, DomainEvent]>([
  ['a success', recovered(1, { recovered_at: start + 200 })],
  ['a move', move],
  ['disabling', disable(1)],
])('a flag stays until %s', async (_, event) => {
  const flag = flagged(1, { reason: 'gone', flagged_at: start + 150 })
  await world.given(endpointCreated(1), flag, rename('New'))
  const state = { status: 'active', flagged_reason: 'gone', target_since: start + 1 }
  expect(await find()).toMatchObject(state)
  await world.given(event)
  expect(await find()).toMatchObject({ flagged_reason: null })
})

test('a rotation puts the new secret first; earlier secrets keep their expiry and are dropped once it has passed', async () => {
  const rotate = (byte: number, at: number, previousEnd: number) =>
    rotated(1, {
      signing_secret_sealed: Buffer.from([byte]),
      rotated_at: start + at,
      previous_expires_at: start + previousEnd,
    })
  const secrets = async () =>
    (await find())?.secrets.map(({ sealed, created_at, expires_at }) => [
      sealed.at(-1),
      created_at - start,
      expires_at === null ? null : expires_at - start,
    ])
  await world.given(endpointCreated(1), rotate(10, 100, 500), rotate(11, 499, 700))
  expect(await secrets()).toEqual([
    [11, 499, null],
    [10, 100, 700],
    [1, 1, 500],
  ])
  await world.given(rotate(12, 500, 500))
  expect(await secrets()).toEqual([
    [12, 500, null],
    [10, 100, 700],
  ])
})

test('events of an unknown endpoint, and a repeated creation, have no effect', async () => {
  await world.given(rename('New'), disable(1))
  expect(await find()).toBeUndefined()
  await world.given(endpointCreated(1), endpointCreated(1, { name: 'Other' }))
  expect(await find()).toMatchObject({ name: 'Endpoint 1', status: 'active' })
})

test('a replayed event does not undo a later change', async () => {
  const [one, two] = [recorded(rename('One')), recorded(rename('Two'))]
  await world.apply([recorded(endpointCreated(1)), one, two, one])
  await world.apply([one])
  expect(await find()).toMatchObject({ name: 'Two' })
})

test('endpoints are found and listed only in their organization and environment, newest first, ties by id', async () => {
  const same = { created_at: start + 50 }
  await world.given(
    endpointCreated(1),
    endpointCreated(2, same),
    endpointCreated(3, same),
    endpointCreated(4, { environment: 'test' }),
    endpointCreated(5, { organization_id: org(2) }),
    disable(3),
  )
  const { pool } = world
  const listed = async (more: object = {}) =>
    ids((await listEndpoints(pool, { ...scope, ...more })).rows)
  expect(await listed()).toEqual([we(3), we(2), we(1)])
  expect(await listed({ environment: 'test' })).toEqual([we(4)])
  expect(await listed({ organizationId: org(2) })).toEqual([we(5)])
  expect(await countActiveEndpoints(pool, org(1))).toBe(3)
  expect(await countActiveEndpoints(pool, org(9))).toBe(0)
  expect([await find(4), await find(5)]).toEqual([undefined, undefined])
  expect(await find(3)).toMatchObject({ id: we(3), status: 'disabled' })
  const found = await findEndpoints(pool, [we(5), we(4), we(9)])
  expect([...found.keys()].toSorted()).toEqual([we(4), we(5)])
  expect(found.get(we(5))).toMatchObject({ id: we(5), organization_id: org(2) })
})

test('a list has all active endpoints and the newest disabled ones, 200 in total, newest first', async () => {
  const numbers = Array.from({ length: 230 }, (_, i) => i + 1)
  const isActive = (n: number) => n <= 10 || n === 150
  const ended = numbers.filter((n) => !isActive(n))
  await world.given(
    ...numbers.slice(0, 200).map((n) => endpointCreated(n)),
    ...ended.filter((n) => n <= 200).map(disable),
  )
  expect(await listEndpoints(world.pool, scope)).toMatchObject({ hasMore: false })
  await world.given(
    ...numbers.slice(200).map((n) => endpointCreated(n)),
    ...ended.filter((n) => n > 200).map(disable),
  )
  const { rows, hasMore } = await listEndpoints(world.pool, scope)
  expect(ids(rows)).toEqual(
    numbers
      .filter((n) => n <= 10 || n > 40)
      .toReversed()
      .map(we),
  )
  expect(hasMore).toBe(true)
  expect(await countActiveEndpoints(world.pool, org(1))).toBe(11)
})

test('findSubscribedEndpoints returns the active endpoints of the scope that are subscribed to the type', async () => {
  const [type, fingerprint] = [
    'session.result.persisted',
    'session.fingerprint.calculated',
  ] as const
  await world.given(
    endpointCreated(2),
    endpointCreated(1),
    endpointCreated(3, { event_types: [fingerprint] }),
    endpointCreated(4, { environment: 'test' }),
    endpointCreated(5, { organization_id: org(2) }),
    endpointCreated(6),
    disable(6),
  )
  const wanted = [
    { ...scope, type },
    { ...scope, type: fingerprint },
    { ...scope, organizationId: org(3), type },
  ]
  const found = await findSubscribedEndpoints(world.pool, wanted)
  expect(Object.fromEntries([...found].map(([name, all]) => [name, ids(all)]))).toEqual({
    [`${org(1)} live ${type}`]: [we(1), we(2)],
    [`${org(1)} live ${fingerprint}`]: [we(3)],
    [`${org(3)} live ${type}`]: [],
  })
})
