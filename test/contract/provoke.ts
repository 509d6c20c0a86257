import { maxItems } from '../../services/agents/schemas.ts'
import { changeOrganization } from '../../services/organizations/commands.ts'
import { decideLimits } from '../../services/organizations/decide-organization.ts'
import { sendExample } from '../authorization/call.ts'
import { bearer, publishableKey, secretKey } from '../authorization/credential.ts'
import type { Example } from '../authorization/endpoint.ts'
import { type CollectBodies, recordCollect } from '../authorization/record-collect.ts'
import { unknownAddress, type World } from '../authorization/world.ts'
import { setStatus } from '../support/organization-status.ts'
import type { Answer } from '../support/raw-http.ts'

export interface Provoking {
  world: World
  organizationId: string
  keys: Awaited<ReturnType<typeof createKeys>>
  collect: CollectBodies
}

export type Provoke = (given: Provoking) => Example | Promise<Example | Answer>

/** Authorization of each kind of key that a code is about. */
async function createKeys(world: World, organizationId: string) {
  const foreign = await world.organization('foreign')
  const suspended = await world.organization('suspended')
  const exhausted = await world.organization('exhausted')
  const ofShop = { organizationId, allowed_origins: ['https://shop.example'] }
  const keys = {
    secret: await secretKey(world, { organizationId }),
    test: await secretKey(world, { organizationId, environment: 'test' }),
    narrow: bearer((await world.issue({ organizationId })).revealedKey),
    publishable: await publishableKey(world, { organizationId }),
    restricted: await publishableKey(world, ofShop),
    native: await publishableKey(world, { organizationId, client_target: 'native_ios' }),
    foreign: await publishableKey(world, { organizationId: foreign }),
    suspended: await secretKey(world, { organizationId: suspended }),
    /** Its organization has no units left for the most expensive request. */
    exhausted: await secretKey(world, { organizationId: exhausted }),
  }
  await changeOrganization(world.deps, exhausted, (organization, change) =>
    decideLimits(organization, { secret_limit: maxItems, ...change }),
  )
  await setStatus(world.deps, suspended, 'suspended')
  await sendExample(world.app, mostExpensive, keys.exhausted)
  return keys
}

export async function prepare(world: World): Promise<Provoking> {
  const organizationId = await world.organization('provoking')
  const keys = await createKeys(world, organizationId)
  const key = keys.publishable.authorization.slice('Bearer '.length)
  return { world, organizationId, keys, collect: await recordCollect(world, key, 'web') }
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

/** Costs as much as the smallest limit of secret keys, so the second of two requests is denied. */
export const mostExpensive = {
  method: 'POST',
  url: '/v1/agents/ip-rotation',
  body: rotationOf(unknownAddress, maxItems),
} as const
