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
