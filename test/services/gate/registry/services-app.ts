import { registryRoutes } from '../../../../services/gate/registry/routes.ts'
import { serviceRoutes } from '../../../../services/gate/registry/service-routes.ts'
import { createServiceApp } from '../../../support/service-app.ts'
import { openServiceWorld } from '../../../support/service-world.ts'

/** The routes of registry and services over the real log, read models, authentication and idempotency. */
export async function startServices() {
  const world = await openServiceWorld()
  const { app, context, send } = await createServiceApp(world)
  for (const add of [registryRoutes, serviceRoutes]) add(app, context)
  return {
    ...world,
    send,
    async stop() {
      await app.close()
      await world.close()
    },
  }
}

export type Services = Awaited<ReturnType<typeof startServices>>
