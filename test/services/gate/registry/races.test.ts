import { randomBytes } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { countServices, findService } from '../../../../projections/gate/queries.ts'
import { organizationsProjection } from '../../../../projections/organizations/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import { findEndpoint } from '../../../../projections/webhooks/queries.ts'
import {
  changeService,
  createService,
  disableService,
} from '../../../../services/gate/registry/commands.ts'
import {
  type EndpointDeps,
  updateEndpoint,
} from '../../../../services/webhooks/endpoints/commands.ts'
import { gateOwner, gateTenant, registration } from '../../../support/gate-world.ts'
import { openTestLogs } from '../../../support/logs.ts'
import { openProcesses, race } from '../../../support/racing.ts'

const at = Date.now()
const newId = () => `race-${randomBytes(6).toString('hex')}`
const environment = 'live'

describe.each(openTestLogs())('in three processes, on $name', async (testLog) => {
  const projections = [organizationsProjection, webhooksProjection, gateProjection]
  const world = await openProcesses({ testLog, projections, clock: () => at })
  afterAll(async () => {
    await world.close()
    await testLog.cleanup()
  })
  const processOf = (racer: number): EndpointDeps => world.processOf(racer)

  test('of 64 concurrent registrations by one organization, five succeed', async () => {
    const tenant = await gateTenant(processOf(0))
    const codes = await race(64, (racer) =>
      createService(processOf(racer), { ...registration(tenant), id: newId() }),
    )
    expect(codes.toSorted()).toEqual([
      ...Array(5).fill('done'),
      ...Array(59).fill('request.conflict'),
    ])
    expect(await countServices(world.pool, tenant.organizationId)).toBe(5)
  })

  test('of 64 concurrent registrations of one id by two organizations, one succeeds', async () => {
    const tenants = [await gateTenant(processOf(0)), await gateTenant(processOf(1))] as const
    const id = newId()
    const codes = await race(64, (racer) =>
      createService(processOf(racer), { ...registration(tenants[racer % 2 === 0 ? 0 : 1]), id }),
    )
    expect(codes.toSorted()).toEqual(['done', ...Array(63).fill('request.conflict')])
    const counts = tenants.map(({ organizationId }) => countServices(world.pool, organizationId))
    expect((await Promise.all(counts)).toSorted()).toEqual([0, 1])
  })

  test('of 64 concurrent registrations of ids that share a variable by two organizations, one succeeds', async () => {
    const tenants = [await gateTenant(processOf(0)), await gateTenant(processOf(1))] as const
    const id = newId()
    const codes = await race(64, (racer) => {
      const other = racer % 2 === 0
      const tenant = registration(tenants[other ? 0 : 1])
      return createService(processOf(racer), { ...tenant, id: other ? id : id.replace('-', '_') })
    })
    expect(codes.toSorted()).toEqual(['done', ...Array(63).fill('request.conflict')])
  })

  test('one registration repeated concurrently takes effect once, and every repeat succeeds', async () => {
    const tenant = await gateTenant(processOf(0))
    const id = newId()
    const same = (racer: number): EndpointDeps => ({
      ...processOf(racer),
      random: (size) => Buffer.alloc(size, tenant.organizationId),
      idTime: at,
    })
    const codes = await race(16, (racer) =>
      createService(same(racer), { ...registration(tenant), id }),
    )
    expect(codes).toEqual(Array(16).fill('done'))
    expect(await countServices(world.pool, tenant.organizationId)).toBe(1)
  })

  test('concurrent changes and disabling leave a disabled service that was not changed afterwards', async () => {
    const { serviceId, organizationId } = await gateOwner(processOf(0))
    const path = { organizationId, environment, serviceId } as const
    const codes = await race(16, (racer) =>
      racer % 4 === 3
        ? disableService(processOf(racer), path)
        : changeService(processOf(racer), { ...path, name: `Name ${racer}` }),
    )
    expect(new Set(codes)).toEqual(
      new Set(['done', ...codes.filter((code) => code === 'request.conflict')]),
    )
    expect(await findService(world.pool, serviceId)).toMatchObject({ status: 'disabled' })
  })

  test('no active service is left with an endpoint that was disabled concurrently', async () => {
    const tenants = await Promise.all(
      Array.from({ length: 12 }, (_, i) => gateTenant(processOf(i))),
    )
    const outcomes = await Promise.all(
      tenants.map(async (tenant, i) => {
        const id = newId()
        const work = [
          () => createService(processOf(i), { ...registration(tenant), id }),
          () => updateEndpoint(processOf(i + 1), { ...tenant, status: 'disabled' }),
        ]
        await race(2, (racer) => (work[i % 2 === 0 ? racer : 1 - racer] ?? never)())
        const service = await findService(world.pool, id)
        const endpoint = await findEndpoint(world.pool, tenant)
        return `${service?.status ?? 'no'} service, ${endpoint?.status} endpoint`
      }),
    )
    for (const outcome of outcomes)
      expect(['active service, active endpoint', 'no service, disabled endpoint']).toContain(
        outcome,
      )
  })
})

function never(): never {
  throw new Error('unreachable')
}
