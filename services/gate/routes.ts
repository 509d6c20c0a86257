import type { FastifyInstance } from 'fastify'
import type { Auth } from '../../infra/access/auth.ts'
import type { Idempotency } from '../../infra/idempotency/idempotency.ts'
import { createReadCurrent } from './accounts/commands.ts'
import { accountRoutes } from './accounts/routes.ts'
import { approvalRoutes } from './approval/routes.ts'
import { claimRoutes } from './claim/routes.ts'
import type { GateContext } from './context.ts'
import { gateErasureRoutes } from './erasure/routes.ts'
import type { Gate } from './gate.ts'
import { loginRoutes } from './login/routes.ts'
import { consentPageRoutes } from './page/routes.ts'
import { domainRoutes } from './registry/domain-routes.ts'
import { registryRoutes } from './registry/routes.ts'
import { serviceRoutes } from './registry/service-routes.ts'
import { signupRoutes } from './signup/routes.ts'

interface GateRouteOptions {
  gate: Gate
  auth: Auth
  idempotency: Idempotency
}

type AddRoutes = (app: FastifyInstance, context: GateContext) => void | Promise<void>

const all: AddRoutes[] = [
  signupRoutes,
  registryRoutes,
  serviceRoutes,
  domainRoutes,
  accountRoutes,
  loginRoutes,
  approvalRoutes,
  claimRoutes,
  gateErasureRoutes,
  consentPageRoutes,
]

/** `/v1/gate`, and the consent page below `/gate`. */
export async function gateRoutes(app: FastifyInstance, options: GateRouteOptions): Promise<void> {
  const context = contextOf(options)
  for (const add of all) await add(app, context)
}

function contextOf({ gate, auth, idempotency }: GateRouteOptions): GateContext {
  const { decideAs, keyring, clock, pool: db } = gate.parts
  return {
    ...gate.parts,
    auth,
    idempotency,
    readCurrent: createReadCurrent({ ...gate.parts, db }),
    depsOf: ({ random, now }, decide) => ({ decide, keyring, clock, random, idTime: now }),
    decideByKey: (request) => decideAs(auth.actor(request), request),
  }
}
