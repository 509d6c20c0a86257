import { createGateLimits } from '../../../../services/gate/limits.ts'
import { domainRoutes } from '../../../../services/gate/registry/domain-routes.ts'
import { registryRoutes } from '../../../../services/gate/registry/routes.ts'
import { serviceRoutes } from '../../../../services/gate/registry/service-routes.ts'
import { createServiceApp } from '../../../support/service-app.ts'
import { openServiceWorld } from '../../../support/service-world.ts'

/** The routes of registry and services over the real log, read models, authentication and idempotency. */
export async function startServices() {
  const world = await openServiceWorld()
  const { app, context, send } = await createServiceApp(world)
  // What domains show; nobody is asked.
  const shown: { txt: Record<string, string[]>; asked: number } = { txt: {}, asked: 0 }
  const domainLooks = {
    async txtRecords(name: string) {
      shown.asked++
      return shown.txt[name] ?? []
    },
    fileAt: async () => undefined,
  }
  const parts = { ...context, limits: createGateLimits(world.pool), domainLooks }
  for (const add of [registryRoutes, serviceRoutes]) add(app, parts)
  domainRoutes(app, parts)
  return {
    ...world,
    send,
    shown,
    async stop() {
      await app.close()
      await world.close()
    },
  }
}

export type Services = Awaited<ReturnType<typeof startServices>>
