import { randomBytes } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { activeSecrets } from '../../../../infra/wire/webhooks/signature.ts'
import { organizationsProjection } from '../../../../projections/organizations/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import {
  countActiveEndpoints,
  findEndpoint,
  listEvents,
} from '../../../../projections/webhooks/queries.ts'
import { createOrganization } from '../../../../services/organizations/commands.ts'
import {
  createEndpoint,
  type EndpointDeps,
  type EndpointPath,
  rotateSecret,
  updateEndpoint,
} from '../../../../services/webhooks/endpoints/commands.ts'
import { sendTest } from '../../../../services/webhooks/endpoints/send-test.ts'
import { openTestLogs } from '../../../support/logs.ts'
import { openProcesses, race } from '../../../support/racing.ts'

const now = { ms: Date.now() }
const environment = 'live'
const request = {
  environment,
  name: 'Racing',
  url: 'https://a.example/',
  event_types: ['session.result.persisted'],
} as const

describe.each(openTestLogs())('in three processes, on $name', async (testLog) => {
  const projections = [organizationsProjection, webhooksProjection]
  const world = await openProcesses({ testLog, projections, clock: () => now.ms })
  afterAll(async () => {
    await world.close()
    await testLog.cleanup()
  })
  const processOf = (racer: number): EndpointDeps => world.processOf(racer)

  async function newOrganization(): Promise<string> {
    const slug = `r-${randomBytes(6).toString('hex')}`
    return (await createOrganization(processOf(0), { name: 'Racing', slug })).organizationId
  }

  async function newEndpoint(organizationId: string): Promise<EndpointPath> {
    const { endpointId } = await createEndpoint(processOf(0), { ...request, organizationId })
    return { organizationId, environment, endpointId }
  }

  const count = (codes: string[], code = 'done') => codes.filter((one) => one === code).length
  const active = (organizationId: string) => countActiveEndpoints(world.pool, organizationId)

  test('of 64 concurrent creations of a twentieth endpoint, one succeeds', async () => {
    const organizationId = await newOrganization()
    for (let i = 0; i < 19; i++) await newEndpoint(organizationId)
    const create = (racer: number) => {
      const where = racer % 2 === 0 ? 'live' : 'test'
      return createEndpoint(processOf(racer), { ...request, environment: where, organizationId })
    }
    const codes = await race(64, create)
    expect([count(codes), count(codes, 'request.conflict')]).toEqual([1, 63])
    expect(await active(organizationId)).toBe(20)
  })

  test('creating and enabling share the limit of twenty', async () => {
    const organizationId = await newOrganization()
    const asleep: EndpointPath[] = []
    for (let i = 0; i < 8; i++) {
      const path = await newEndpoint(organizationId)
      await updateEndpoint(processOf(i), { ...path, status: 'disabled' })
      asleep.push(path)
    }
    for (let i = 0; i < 17; i++) await newEndpoint(organizationId)
    const codes = await race(16, (racer) => {
      const path = asleep[racer]
      return path
        ? updateEndpoint(processOf(racer), { ...path, status: 'active' })
        : createEndpoint(processOf(racer), { ...request, organizationId })
    })
    expect([count(codes), await active(organizationId)]).toEqual([3, 20])
  })

  test('of 64 concurrent rotations of one secret, two succeed, so three secrets are active', async () => {
    const path = await newEndpoint(await newOrganization())
    const codes = await race(64, (racer) => rotateSecret(processOf(racer), path))
    expect([count(codes), count(codes, 'request.conflict')]).toEqual([2, 62])
    const endpoint = await findEndpoint(world.pool, path)
    expect(activeSecrets(endpoint?.secrets ?? [], now.ms)).toHaveLength(3)
  })

  test('one creation, rotation and test, each repeated concurrently, take effect once', async () => {
    const organizationId = await newOrganization()
    const same = (racer: number, byte: number): EndpointDeps => ({
      ...processOf(racer),
      random: (size) => Buffer.alloc(size, byte),
      idTime: now.ms,
    })
    const creations = Array.from({ length: 8 }, (_, racer) =>
      createEndpoint(same(racer, 7), { ...request, organizationId }),
    )
    const [created, ...repeated] = await Promise.all(creations)
    expect(repeated).toEqual(Array(7).fill(created))
    const path = { organizationId, environment, endpointId: created?.endpointId ?? '' } as const
    expect(count(await race(8, (racer) => rotateSecret(same(racer, 8), path)))).toBe(8)
    expect(count(await race(8, (racer) => sendTest(same(racer, 9), path)))).toBe(8)
    expect(await active(organizationId)).toBe(1)
    expect((await findEndpoint(world.pool, path))?.secrets).toHaveLength(2)
    const scope = { organizationId, environment, since: 0, limit: 10 } as const
    expect(await listEvents(world.pool, scope)).toHaveLength(1)
  })

  test('of 64 concurrent tests of one endpoint, ten succeed', async () => {
    const path = await newEndpoint(await newOrganization())
    const codes = await race(64, (racer) => sendTest(processOf(racer), path))
    expect([count(codes), count(codes, 'rate_limit.exceeded')]).toEqual([10, 54])
  })
})
