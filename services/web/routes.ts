import type { FastifyInstance } from 'fastify'
import type { Random } from '../../infra/ids.ts'
import { bundleSdk } from './bundle.ts'
import { type Demo, demoApiRoutes } from './demo-api.ts'
import { pageRoutes } from './pages.ts'
import { sdkRoute } from './sdk-route.ts'

export { createDemo, type Demo } from './demo-api.ts'

export interface WebDeps {
  random: Random
  /** Absent = no demo page, as on a server without a development organization. */
  demo?: Demo | undefined
}

/** The browser SDK at /t.js, the start page, and the demo with its own small back end. */
export async function webRoutes(app: FastifyInstance, { random, demo }: WebDeps): Promise<void> {
  sdkRoute(app, await bundleSdk())
  await pageRoutes(app, { publishableKey: demo?.publishableKey })
  if (demo) demoApiRoutes(app, { demo, linkKey: random(32) })
}
