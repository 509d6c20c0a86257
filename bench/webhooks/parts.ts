import type { Core } from '../../services/server/dependencies.ts'
import type { Child } from '../child.ts'
import type { Environment } from '../environment.ts'
import type { Endpoints } from './endpoints.ts'

/** Processes and connections shared by the webhook measures. */
export interface WebhookParts {
  environment: Environment
  /** The process with the role `webhooks` alone. */
  child: Child
  /** The process that applies its attempts to the read model; it serves the API, too. */
  projections: Child
  core: Core
  receiver: Child
  endpoints: Endpoints
}
