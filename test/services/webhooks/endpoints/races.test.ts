import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { liveSecrets } from '../../../../infra/wire/webhooks/signature.ts'
import { organizationsProjection } from '../../../../projections/organizations/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import { listEndpoints, listEvents } from '../../../../projections/webhooks/queries.ts'
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
import { openProcesses, type Processes, race } from '../../../support/racing.ts'

const now = { ms: Date.now() }
const environment = 'live'
const request = {
  environment,
  name: 'Racing',
  url: 'https://a.example/',
  event_types: ['session.result.persisted'],
} as const

describe.each(openTestLogs())('in three processes, on $name', (testLog) => {
  let world: Processes
  beforeAll(async () => {
    const projections = [organizationsProjection, webhooksProjection]
    world = await openProcesses({ testLog, projections, clock: () => now.ms })
  })
  afterAll(async () => {
    await world?.close()
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

  async function endpointsOf(organizationId: string) {
    const { pool } = world
    const live = await listEndpoints(pool, { organizationId, environment: 'live' })
    const test = await listEndpoints(pool, { organizationId, environment: 'test' })
    return [...live.rows, ...test.rows]
  }
  const isActive = ({ status }: { status: string }) => status === 'active'

  test('of 64 that create a twentieth endpoint at once, one does', async () => {
    const organizationId = await newOrganization()
    for (let i = 0; i < 19; i++) await newEndpoint(organizationId)
    const create = (racer: number) => {
      const where = racer % 2 === 0 ? 'live' : 'test'
      return createEndpoint(processOf(racer), { ...request, environment: where, organizationId })
    }
    expect((await race(64, create)).toSorted()).toEqual([
      'done',
      ...Array(63).fill('request.conflict'),
    ])
    expect(await endpointsOf(organizationId)).toHaveLength(20)
  })

  test('creating and enabling share the twenty places', async () => {
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
    expect(codes.filter((code) => code === 'done')).toHaveLength(3)
    expect((await endpointsOf(organizationId)).filter(isActive)).toHaveLength(20)
  })

  test('of 64 that rotate one secret at once, two do: three secrets sign', async () => {
    const path = await newEndpoint(await newOrganization())
    const codes = await race(64, (racer) => rotateSecret(processOf(racer), path))
    expect(codes.toSorted()).toEqual(['done', 'done', ...Array(62).fill('request.conflict')])
    const [endpoint] = await endpointsOf(path.organizationId)
    expect(liveSecrets(endpoint?.secrets ?? [], now.ms)).toHaveLength(3)
  })

  test('one creation, one rotation and one test, each repeated at once by many, happen once', async () => {
    const organizationId = await newOrganization()
    const same = (racer: number, byte: number): EndpointDeps => ({
      ...processOf(racer),
      random: (size) => Buffer.alloc(size, byte),
      idTime: now.ms,
    })
    const created = await Promise.all(
      Array.from({ length: 8 }, (_, racer) =>
        createEndpoint(same(racer, 7), { ...request, organizationId }),
      ),
    )
    expect(
      new Set(created.map(({ endpointId, signingSecret }) => endpointId + signingSecret)).size,
    ).toBe(1)
    const path = { organizationId, environment, endpointId: created[0]?.endpointId ?? '' } as const
    expect(await race(8, (racer) => rotateSecret(same(racer, 8), path))).toEqual(
      Array(8).fill('done'),
    )
    expect(await race(8, (racer) => sendTest(same(racer, 9), path))).toEqual(Array(8).fill('done'))
    const endpoints = await endpointsOf(organizationId)
    expect(endpoints.map(({ secrets }) => secrets.length)).toEqual([2])
    const scope = { organizationId, environment, since: 0, limit: 10 } as const
    expect(await listEvents(world.pool, scope)).toHaveLength(1)
  })

  test('of 64 tests of one endpoint at once, ten are sent', async () => {
    const path = await newEndpoint(await newOrganization())
    const codes = await race(64, (racer) => sendTest(processOf(racer), path))
    expect(codes.filter((code) => code === 'done')).toHaveLength(10)
    expect(codes.filter((code) => code === 'rate_limit.exceeded')).toHaveLength(54)
  })
})
