import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { createDecide } from '../../../../infra/decide.ts'
import { ApiError } from '../../../../infra/http/errors.ts'
import { createPool } from '../../../../infra/postgres/pool.ts'
import { createAddressRules } from '../../../../infra/webhooks/address-rules.ts'
import { createApplied } from '../../../../projections/applied.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { countServices, findService } from '../../../../projections/gate/service-queries.ts'
import { organizationsProjection } from '../../../../projections/organizations/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import { findEndpoint } from '../../../../projections/webhooks/queries.ts'
import {
  changeService,
  disableService,
  registerService,
} from '../../../../services/gate/registry/service-commands.ts'
import {
  disableEndpoint,
  type EndpointDeps,
} from '../../../../services/webhooks/endpoints/endpoint-commands.ts'
import { gateOwner, gateTenant, registration } from '../../../support/gate-world.ts'
import { openTestLogs } from '../../../support/logs.ts'
import {
  ensureTopics,
  openProjectionWorld,
  type ProjectionWorld,
  silent,
} from '../../../support/projections.ts'

const keyring = createKeyring(randomBytes(32).toString('base64'))
const rules = createAddressRules([])
const at = Date.now()
const newId = () => `race-${randomBytes(6).toString('hex')}`
const environment = 'live'

describe.each(openTestLogs())('in three processes, on $name', (testLog) => {
  let world: ProjectionWorld
  let processes: EndpointDeps[]
  const closing: (() => Promise<void>)[] = []

  /** Everything that a process has of its own: a small pool, its log, its ear for projections. */
  async function openProcess(): Promise<EndpointDeps> {
    const { url } = world.database
    const pool = createPool({ url, max: 6 })
    const applied = await createApplied({ url, pool, logger: silent })
    const parts = { pool, log: await testLog.open(), codec: world.codec, applied }
    closing.push(async () => {
      await applied.close()
      await pool.end()
    })
    const decide = createDecide({ ...parts, timeoutMs: 30_000 })
    return { decide, keyring, rules, clock: () => at, random: randomBytes }
  }

  beforeAll(async () => {
    world = await openProjectionWorld()
    const log = await testLog.open()
    await ensureTopics(log)
    for (const projection of [organizationsProjection, webhooksProjection, gateProjection])
      await world.run(log, projection)
    processes = [await openProcess(), await openProcess(), await openProcess()]
  })
  afterAll(async () => {
    for (const close of closing) await close()
    await world?.close()
    await testLog.cleanup()
  })

  function processOf(racer: number): EndpointDeps {
    const process = processes[racer % processes.length]
    if (!process) throw new Error('no process')
    return process
  }

  test('of 64 services that one organization registers at once, five are', async () => {
    const tenant = await gateTenant(processOf(0))
    const codes = await race(64, (racer) =>
      registerService(processOf(racer), { ...registration(tenant), id: newId() }),
    )
    expect(codes.toSorted()).toEqual([...Array(5).fill('done'), ...Array(59).fill('request.conflict')])
    expect(await countServices(world.database.pool, tenant.organizationId)).toBe(5)
  })

  test('of 64 registrations of one id by two organizations at once, one is', async () => {
    const tenants = [await gateTenant(processOf(0)), await gateTenant(processOf(1))] as const
    const id = newId()
    const codes = await race(64, (racer) =>
      registerService(processOf(racer), { ...registration(tenants[racer % 2 === 0 ? 0 : 1]), id }),
    )
    expect(codes.toSorted()).toEqual(['done', ...Array(63).fill('request.conflict')])
    const counts = tenants.map(({ organizationId }) => countServices(world.database.pool, organizationId))
    expect((await Promise.all(counts)).toSorted()).toEqual([0, 1])
  })

  test('one registration, repeated at once by many, happens once and is refused to none', async () => {
    const tenant = await gateTenant(processOf(0))
    const id = newId()
    const same = (racer: number): EndpointDeps => ({
      ...processOf(racer),
      random: (size) => Buffer.alloc(size, tenant.organizationId),
      idTime: at,
    })
    const codes = await race(16, (racer) => registerService(same(racer), { ...registration(tenant), id }))
    expect(codes).toEqual(Array(16).fill('done'))
    expect(await countServices(world.database.pool, tenant.organizationId)).toBe(1)
  })

  test('changing and disabling at once leaves one disabled service that nobody changed since', async () => {
    const { serviceId, organizationId } = await gateOwner(processOf(0))
    const path = { organizationId, environment, serviceId } as const
    const codes = await race(16, (racer) =>
      racer % 4 === 3
        ? disableService(processOf(racer), path)
        : changeService(processOf(racer), { ...path, name: `Name ${racer}` }),
    )
    expect(new Set(codes)).toEqual(new Set(['done', ...codes.filter((code) => code === 'request.conflict')]))
    expect(await findService(world.database.pool, serviceId)).toMatchObject({ status: 'disabled' })
  })

  test('no active service is left with an endpoint that was disabled at the same time', async () => {
    const tenants = await Promise.all(Array.from({ length: 12 }, (_, i) => gateTenant(processOf(i))))
    const outcomes = await Promise.all(
      tenants.map(async (tenant, i) => {
        const id = newId()
        const work = [
          () => registerService(processOf(i), { ...registration(tenant), id }),
          () => disableEndpoint(processOf(i + 1), tenant),
        ]
        await race(2, (racer) => (work[i % 2 === 0 ? racer : 1 - racer] ?? never)())
        const service = await findService(world.database.pool, id)
        const endpoint = await findEndpoint(world.database.pool, tenant)
        return `${service?.status ?? 'no'} service, ${endpoint?.status} endpoint`
      }),
    )
    for (const outcome of outcomes)
      expect(['active service, active endpoint', 'no service, disabled endpoint']).toContain(outcome)
  })
})

function never(): never {
  throw new Error('unreachable')
}

/** What became of each racer: 'done' or the code of its refusal. */
function race(racers: number, run: (racer: number) => Promise<unknown>): Promise<string[]> {
  const codeOf = (error: unknown) => (error instanceof ApiError ? error.code : String(error))
  return Promise.all(Array.from({ length: racers }, (_, racer) => run(racer).then(() => 'done', codeOf)))
}
