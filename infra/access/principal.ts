import type { Environment } from '../../schemas/events.ts'
import type { KeyId, OrganizationId } from '../ids.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the authentication hooks; null on routes without one. */
    principal: Principal | null
  }
}

interface Base {
  keyId: KeyId
  organizationId: OrganizationId
  environment: Environment
  /** Units in 60 seconds of the bucket that the organization's keys of this type share; null = the server's default. */
  rateLimit: number | null
}

/** Who a verified key speaks for. */
export type Principal = PublishablePrincipal | SecretPrincipal

export interface PublishablePrincipal extends Base {
  type: 'publishable'
  clientTarget: 'browser' | 'native_ios' | 'native_android'
  /** Empty = any origin. */
  allowedOrigins: string[]
}

export interface SecretPrincipal extends Base {
  type: 'secret'
  scopes: string[]
  /** What the organization may use that is off by default. */
  capabilities: readonly string[]
}

/** A stored key as authentication needs it. */
export interface KeyRecord {
  principal: Principal
  status: 'active' | 'rotating' | 'revoked'
  /** Epoch milliseconds; a rotating key stops working here. */
  graceExpiresAt: number | null
  organizationStatus: 'active' | 'suspended' | 'deleted'
}
