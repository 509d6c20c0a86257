import type { onRequestHookHandler, RouteOptions } from 'fastify'
import type { Environment } from '../../schemas/events.ts'
import type { ConsoleSessionId, KeyId, OrganizationId } from '../ids.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the authentication hooks; null on routes without one. */
    principal: Principal | null
  }
}

interface PrincipalBase {
  organizationId: OrganizationId
  environment: Environment
}

interface KeyBase extends PrincipalBase {
  keyId: KeyId
  /**
   * Units per 60 seconds of the bucket that the organization's keys of this type share. null = the server's default.
   */
  rateLimit: number | null
}

interface CallerBase extends PrincipalBase {
  scopes: readonly string[]
  capabilities: readonly string[]
}

export type KeyPrincipal = PublishablePrincipal | SecretPrincipal
export type Principal = KeyPrincipal | PersonPrincipal
/** A caller of the REST API: a back end with its secret key, or a person in the console. */
export type Caller = SecretPrincipal | PersonPrincipal

export interface PublishablePrincipal extends KeyBase {
  type: 'publishable'
  clientTarget: 'browser' | 'native_ios' | 'native_android'
  /** Empty = any origin. */
  allowedOrigins: string[]
  /** The organization records IP addresses truncated to their network. */
  shortensAddresses: boolean
}

export interface SecretPrincipal extends KeyBase, CallerBase {
  type: 'secret'
  /** Allowed origins of the publishable keys of its organization and environment. */
  origins: readonly string[]
}

/** A person logged in to the console, in the environment that the request names. */
export interface PersonPrincipal extends CallerBase {
  type: 'person'
  consoleSessionId: ConsoleSessionId
  /** All environments that the session was granted; the request names one of them. */
  environments: readonly Environment[]
}

export interface KeyRecord {
  principal: KeyPrincipal
  status: 'active' | 'rotating' | 'revoked'
  /** When the key expires or its rotation's grace period ends, whichever is earlier, in epoch milliseconds. */
  endsAt: number | null
  organizationStatus: 'active' | 'suspended' | 'deleted'
}

/** Scopes of a secret key. `*` grants all of them, including future ones. */
export const scopes = [
  '*',
  'sessions:list',
  'sessions:read',
  'sessions:update',
  'sessions:mark',
  'fingerprints:list',
  'fingerprints:read',
  'visitors:export',
  'visitors:erase',
  'visitors:manage',
  'views:manage',
  'organizations:create',
  'organizations:read',
  'organizations:update',
  'api_keys:read',
  'api_keys:manage',
  'webhooks:read',
  'webhooks:manage',
  'gate:agent_tokens:verify',
  'gate:agent_tokens:revoke',
  'gate:login_sessions:consume',
  'gate:services:read',
  'gate:services:manage',
  'agents:ip_rotation',
  'requests:score',
] as const
export type Scope = (typeof scopes)[number]

/** Scopes of a secret key without stored scopes. */
export const defaultScopes: Scope[] = ['sessions:read', 'sessions:update', 'fingerprints:read']

/** The credential that a route requires: an API key or one of Gate's tokens. */
export type Access = KeyAccess | { token: 'poll' | 'agent' }

export interface KeyAccess {
  keyType: 'secret' | 'publishable'
  scope?: string
  /** The organization in the path must be the key's own. */
  ownOrganization?: boolean
}

/** A setting that applies to live and test, so changing it requires access to live. */
export interface SharedSetting {
  /** Start of the error message: `Agent directories` of "Agent directories apply to live and test; use a live key." */
  subject: string
  /** The published contract lets test keys change it. Console sessions still need live. */
  allowsTestKeys?: true
}

const accessByHook = new WeakMap<object, Access>()

/** Records the access that a hook enforces, from which the OpenAPI document is generated. Returns the hook. */
export function declareAccess<Hook extends onRequestHookHandler>(access: Access, hook: Hook): Hook {
  accessByHook.set(hook, access)
  return hook
}

/** Returns the access that a route's hooks enforce; undefined for a public route. */
export function accessOf({ onRequest }: Pick<RouteOptions, 'onRequest'>): Access | undefined {
  const hooks = onRequest === undefined ? [] : [onRequest].flat()
  return hooks.map((hook) => accessByHook.get(hook)).find((access) => access !== undefined)
}
