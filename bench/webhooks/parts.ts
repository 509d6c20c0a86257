import type { Core } from '../../services/server/dependencies.ts'
import type { Child } from '../child.ts'
import type { Environment } from '../environment.ts'
import type { Endpoints } from './endpoints.ts'

/** Processes and connections shared by the webhook measures. */
export interface WebhookParts {
  environment: Environment
  /** The process with the role `webhooks` alone. */
  child: Child
  core: Core
  receiver: Child
  endpoints: Endpoints
}
