import { domainRoutes } from '../../../../services/gate/registry/domain-routes.ts'
import { registryRoutes } from '../../../../services/gate/registry/routes.ts'
import { serviceRoutes } from '../../../../services/gate/registry/service-routes.ts'
import { createServiceApp } from '../../../support/service-app.ts'
import { openServiceWorld } from '../../../support/service-world.ts'
import { gateContext, gateOptions, gateParts } from '../parts.ts'

/** The routes of registry and services over the real log, read models, authentication and idempotency. */
export async function startServices() {
  const world = await openServiceWorld()
  const { app, context, send } = await createServiceApp(world)
  // The records of domains, and how often they were read.
  const published: { txt: Record<string, string[]>; reads: number } = { txt: {}, reads: 0 }
  const domainReader = {
    async txtRecords(name: string) {
      published.reads++
      return published.txt[name] ?? []
    },
    fileAt: async () => undefined,
  }
  const gate = gateContext(gateParts(gateOptions(world, { domainReader })), context)
  for (const add of [registryRoutes, serviceRoutes, domainRoutes]) add(app, gate)
  return {
    ...world,
    send,
    published,
    async stop() {
      await app.close()
      await world.close()
    },
  }
}

export type Services = Awaited<ReturnType<typeof startServices>>
