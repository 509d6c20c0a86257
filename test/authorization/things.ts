import { randomBytes } from 'node:crypto'
import { newId } from '../../infra/event-store/decide.ts'
import { decideAlertSave } from '../../services/readback/views/alert-decide.ts'
import { newAlert } from '../../services/readback/views/alert-store.ts'
import { addView, changeViews } from '../../services/readback/views/commands.ts'
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
  const viewId = stayingOrFresh(() => saveView(world, organizationId))
  return {
    organizationId,
    keyId: stayingOrFresh(issue),
    webhook: stayingOrFresh(() => world.webhook(organizationId)),
    person: stayingOrFresh(() => world.person(organizationId)),
    viewId,
    alertId: stayingOrFresh(async () =>
      saveAlert(world, organizationId, await viewId({ fresh: false })),
    ),
  }
}

const saveView = (world: World, organizationId: string) =>
  addView(
    world.deps,
    { organizationId, environment: 'live' },
    { name: randomBytes(6).toString('hex'), query: 'verdict=bot' },
  )

async function saveAlert(world: World, organizationId: string, view_id: string) {
  const scope = { organizationId, environment: 'live' } as const
  const now = world.deps.clock()
  const id = newId('alert', { ...world.deps, now })
  const settings = { view_id, kind: 'count', threshold: 60, window_minutes: 60 } as const
  const alert = newAlert(scope, { id, now, ...settings })
  await changeViews(world.deps, scope, (views, alerts) => decideAlertSave(alerts, views, alert))
  return id
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
