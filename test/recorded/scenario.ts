import type { Recorded } from './recorder.ts'
import { access } from './scenario/access.ts'
import { agents } from './scenario/agents.ts'
import { apiKeys } from './scenario/api-keys.ts'
import { auditLog } from './scenario/audit-log.ts'
import { collect } from './scenario/collect.ts'
import { corrections } from './scenario/corrections.ts'
import { demo } from './scenario/demo.ts'
import { erasure } from './scenario/erasure.ts'
import { gateServices } from './scenario/gate-services.ts'
import { gateSessions } from './scenario/gate-sessions.ts'
import { limits } from './scenario/limits.ts'
import { organizations } from './scenario/organizations.ts'
import { pages } from './scenario/pages.ts'
import { readback } from './scenario/readback.ts'
import { views } from './scenario/views.ts'
import { webhooks } from './scenario/webhooks.ts'
import { startWorld, type World } from './world.ts'

/**
 * Sends the same requests to a server of the checkout and resolves with its answers. Each part goes on with what the
 * parts before it left.
 */
export async function playScenario(
  checkout: string,
  { atEnd }: { atEnd?: (world: World) => Promise<void> } = {},
): Promise<Recorded[]> {
  const world = await startWorld(checkout)
  try {
    await pages(world)
    await organizations(world)
    await access(world)
    await apiKeys(world)
    const endpoints = await webhooks(world)
    const visits = await collect(world)
    await readback(world, { visits, endpoints })
    await views(world)
    await demo(world, visits)
    await agents(world)
    const service = await gateServices(world)
    await gateSessions(world, service)
    await limits(world)
    await auditLog(world)
    await erasure(world, visits)
    await corrections(world, visits)
    await atEnd?.(world)
    return world.recorded
  } finally {
    await world.stop()
  }
}
