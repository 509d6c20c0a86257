import type { Tenants } from './credential.ts'
import type { Context } from './endpoint.ts'
import { createGateTokens } from './gate-tokens.ts'
import { recordCollect } from './record-collect.ts'
import type { World } from './world.ts'

/** One of each kind that stays, and as many more as are asked for. Each is made when it is asked for first. */
export function thingsOf(world: World, organizationId: string) {
  const issue = async () =>
    (await world.issue({ organizationId, type: 'secret', scopes: ['api_keys:manage'] })).keyId
  return {
    organizationId,
    keyId: stayingOrFresh(issue),
    webhook: stayingOrFresh(() => world.webhook(organizationId)),
    person: stayingOrFresh(() => world.person(organizationId)),
  }
}

function stayingOrFresh<T>(make: () => Promise<T>): (options: { fresh: boolean }) => Promise<T> {
  let staying: Promise<T> | undefined
  return ({ fresh }) => {
    if (fresh) return make()
    staying ??= make()
    return staying
  }
}

/** The resources of an organization that examples are about, with the bodies of a page. */
export async function createExampleContext(
  world: World,
  tenants: Tenants,
): Promise<Omit<Context, 'succeeds'>> {
  const { gate } = await createGateTokens(world, tenants)
  const { revealedKey } = await world.issue({ organizationId: tenants.own, type: 'publishable' })
  const web = await recordCollect(world, revealedKey, 'web')
  const bodies = { web, ios: web, android: web }
  return { world, bodies, gate, platform: 'web', ...thingsOf(world, tenants.own) }
}
