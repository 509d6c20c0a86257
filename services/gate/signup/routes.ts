import type { FastifyInstance } from 'fastify'
import { ackRoute } from './ack-route.ts'
import { cancelRoute } from './cancel-route.ts'
import { consentRoute } from './consent-route.ts'
import type { SignupContext } from './context.ts'
import { createRoute } from './create-route.ts'
import { pollRoute } from './poll-route.ts'

/** Signups as those who ask for them and those who decide see them; consent and cancel are about logins, too. */
export function signupRoutes(app: FastifyInstance, context: SignupContext): void {
  createRoute(app, context)
  pollRoute(app, context)
  consentRoute(app, context)
  cancelRoute(app, context)
  ackRoute(app, context)
}
