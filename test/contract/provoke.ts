import type { FastifyInstance } from 'fastify'
import { maxItems } from '../../services/agents/schemas.ts'
import { changeOrganization } from '../../services/organizations/commands.ts'
import { decideLimits } from '../../services/organizations/decide-organization.ts'
import { bearer, publishableKey, secretKey } from '../authorization/credential.ts'
import type { Example } from '../authorization/examples.ts'
import { type CollectBodies, recordCollect } from '../authorization/record-collect.ts'
import { unknownAddress, type World } from '../authorization/world.ts'
import { freshAddress } from '../support/gate-flow.ts'
import type { Answer } from '../support/raw-http.ts'

export interface Keys {
  secret: Record<string, string>
  test: Record<string, string>
  narrow: Record<string, string>
  publishable: Record<string, string>
  restricted: Record<string, string>
  native: Record<string, string>
  foreign: Record<string, string>
  suspended: Record<string, string>
  /** Of an organization that has no units left for the most expensive request. */
  exhausted: Record<string, string>
}

export interface Provoking {
  world: World
  organizationId: string
  keys: Keys
  collect: CollectBodies
}

export type Provoke = (given: Provoking) => Example | Promise<Example | Answer>

/** Keys of each kind that a code is about. */
export async function prepare(world: World): Promise<Provoking> {
  const organizationId = await world.organization('provoking')
  const foreign = await world.organization('foreign')
  const suspended = await world.organization('suspended')
  const exhausted = await world.organization('exhausted')
  const publishable = await publishableKey(world, { organizationId })
  const allowed_origins = ['https://shop.example']
  const keys = {
    secret: await secretKey(world, { organizationId }),
    test: await secretKey(world, { organizationId, environment: 'test' }),
    narrow: bearer((await world.issue({ organizationId })).revealedKey),
    publishable,
    restricted: await publishableKey(world, { organizationId, allowed_origins }),
    native: await publishableKey(world, { organizationId, client_target: 'native_ios' }),
    foreign: await publishableKey(world, { organizationId: foreign }),
    suspended: await secretKey(world, { organizationId: suspended }),
    exhausted: await secretKey(world, { organizationId: exhausted }),
  }
  await changeOrganization(world.deps, exhausted, (organization, change) =>
    decideLimits(organization, { secret_limit: maxItems, ...change }),
  )
  const suspending = { status: 'suspended' }
  const url = `/v1/organizations/${suspended}`
  await call(world.app, { method: 'PATCH', url, body: suspending, headers: keys.suspended })
  await call(world.app, { ...mostExpensive, headers: keys.exhausted })
  const collect = await recordCollect(
    world,
    publishable.authorization.slice('Bearer '.length),
    'web',
  )
  return { world, organizationId, keys, collect }
}

/** Sends a request into the app without a socket. */
export async function call(
  app: FastifyInstance,
  { method, url, body, headers, from = freshAddress() }: Example & { from?: string },
): Promise<Answer> {
  const isJson = typeof body === 'object' && !Buffer.isBuffer(body)
  const response = await app.inject({
    method,
    url,
    remoteAddress: from,
    headers: { ...(isJson && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { payload: isJson ? JSON.stringify(body) : body }),
  })
  return { status: response.statusCode, headers: response.headers, body: response.body }
}

/** A well-formed body of an IP rotation. */
export function rotationOf(ip: string, count = 1) {
  return {
    items: Array.from({ length: count }, () => ({
      ip,
      proxy_provider: 'BYTEFUL',
      desired_country_code: 'DE',
    })),
  }
}

/** What costs as much as the smallest limit of secret keys: sent twice, the second is denied. */
export const mostExpensive = {
  method: 'POST',
  url: '/v1/agents/ip-rotation',
  body: rotationOf(unknownAddress, maxItems),
} as const
