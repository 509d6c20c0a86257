import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Auth } from '../../../infra/access/auth.ts'
import { createFreshReader } from '../accounts/commands.ts'
import type { GateManagement, GateOptions } from '../context.ts'
import { listServicesRoute } from '../registry/service-routes.ts'
import { managedAccountRoutes } from './account-routes.ts'
import { countSignupsRoute } from './count-route.ts'
import { consentPreviewDataRoute } from './preview-routes.ts'

/** Adds the routes that the console has, too. */
export function gateManagementRoutes(app: FastifyInstance, context: GateManagement): void {
  listServicesRoute(app, context)
  managedAccountRoutes(app, context)
  countSignupsRoute(app, context)
}

type ConsoleParts = Pick<
  GateOptions,
  'applied' | 'clock' | 'decideAs' | 'keyring' | 'log' | 'pool'
> & { auth: Auth }

/** Adds Gate's routes to the console's API. They need no process with the role `gate`. */
export function gateConsoleRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const { auth, decideAs } = parts
  const context = {
    ...parts,
    readFresh: createFreshReader(parts),
    decideAsCaller: (request: FastifyRequest) => decideAs(auth.actor(request), request),
  }
  gateManagementRoutes(app, context)
  consentPreviewDataRoute(app, context)
}
