import type { FastifyInstance } from 'fastify'
import type { Auth } from '../../infra/access/auth.ts'
import type { Idempotency } from '../../infra/idempotency/idempotency.ts'
import { createFreshReader } from './accounts/commands.ts'
import { accountRoutes } from './accounts/routes.ts'
import { approvalRoutes } from './approval/routes.ts'
import { claimRoutes } from './claim/routes.ts'
import type { GateContext } from './context.ts'
import { gateErasureRoutes } from './erasure/routes.ts'
import type { Gate } from './gate.ts'
import { loginRoutes } from './login/routes.ts'
import { gateManagementRoutes } from './management/routes.ts'
import { consentPageRoutes } from './page/routes.ts'
import { domainRoutes } from './registry/domain-routes.ts'
import { registryRoutes } from './registry/routes.ts'
import { serviceRoutes } from './registry/service-routes.ts'
import { signupRoutes } from './signup/routes.ts'

const routes: ((app: FastifyInstance, context: GateContext) => void | Promise<void>)[] = [
  signupRoutes,
  registryRoutes,
  gateManagementRoutes,
  serviceRoutes,
  domainRoutes,
  accountRoutes,
  loginRoutes,
  approvalRoutes,
  claimRoutes,
  gateErasureRoutes,
  consentPageRoutes,
]

/** Adds the routes under `/v1/gate`, and the consent and receipt pages under `/gate`. */
export async function gateRoutes(
  app: FastifyInstance,
  { gate, auth, idempotency }: { gate: Gate; auth: Auth; idempotency: Idempotency },
): Promise<void> {
  const { parts } = gate
  const context: GateContext = {
    ...parts,
    auth,
    idempotency,
    readFresh: createFreshReader(parts),
    depsOf: ({ random, now }, decide) => ({ ...parts, decide, random, idTime: now }),
    decideAsCaller: (request) => parts.decideAs(auth.actor(request), request),
  }
  for (const register of routes) await register(app, context)
}
