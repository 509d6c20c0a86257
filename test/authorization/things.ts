import { randomBytes } from 'node:crypto'
import { addView } from '../../services/readback/views/commands.ts'
import type { Credential, Tenants } from './credential.ts'
import { createCredentials } from './credentials.ts'
import type { Context } from './endpoint.ts'
import { endpoints } from './examples.ts'
import { expectedCell } from './expected.ts'
import { createGateTokens } from './gate-tokens.ts'
import { readOperations } from './operations.ts'
import { recordBodies, recordCollect } from './record-collect.ts'
import type { World } from './world.ts'

/** Objects by kind, created on first use: a permanent one, and new ones on request. */
export function thingsOf(world: World, organizationId: string) {
  const issue = async () =>
    (await world.issue({ organizationId, type: 'secret', scopes: ['api_keys:manage'] })).keyId
  return {
    organizationId,
    keyId: stayingOrFresh(issue),
    webhook: stayingOrFresh(() => world.webhook(organizationId)),
    person: stayingOrFresh(() => world.person(organizationId)),
    viewId: stayingOrFresh(() => saveView(world, organizationId)),
  }
}

const saveView = (world: World, organizationId: string) =>
  addView(
    world.deps,
    { organizationId, environment: 'live' },
    { name: randomBytes(6).toString('hex'), query: 'verdict=bot' },
  )

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

/** Two organizations, every kind of credential, and what requests about the first one need. */
export async function createMatrix(world: World) {
  const own = await world.organization('own')
  const other = await world.organization('other')
  const credentials = await createCredentials(world, { own, other })
  const { gate, tokens } = await createGateTokens(world, { own, other })
  credentials.push(...tokens)
  const bodies = await recordBodies(world, credentials)
  const operations = readOperations(world.app.swagger())
  return {
    own,
    other,
    credentials,
    operations,
    context: { world, bodies, gate, ...thingsOf(world, own) },
    /** A credential with which the operation succeeds. */
    rightFor(id: string): Credential {
      const [operation, endpoint] = [operations.get(id), endpoints[id]]
      const right =
        operation &&
        endpoint &&
        credentials.find(
          (one) => expectedCell(operation, endpoint, one).status === endpoint.success,
        )
      if (!right) throw new Error(`no credential opens ${id}`)
      return right
    },
  }
}
