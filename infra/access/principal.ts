import type { onRequestHookHandler, RouteOptions } from 'fastify'
import type { Environment } from '../../schemas/events.ts'
import type { ConsoleSessionId, KeyId, OrganizationId } from '../ids.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the authentication hooks; null on routes without one. */
    principal: Principal | null
  }
}

interface Base {
  organizationId: OrganizationId
  environment: Environment
}

interface OfKey extends Base {
  keyId: KeyId
  /**
   * Units in 60 seconds of the bucket that the organization's keys of this type share. null = the server's default.
   */
  rateLimit: number | null
}

interface OfCaller extends Base {
  scopes: readonly string[]
  capabilities: readonly string[]
}

export type KeyPrincipal = PublishablePrincipal | SecretPrincipal
export type Principal = KeyPrincipal | PersonPrincipal
/** Who may call the REST API: a back end with its key, or a person in the console. */
export type Caller = SecretPrincipal | PersonPrincipal

export interface PublishablePrincipal extends OfKey {
  type: 'publishable'
  clientTarget: 'browser' | 'native_ios' | 'native_android'
  /** Empty = any origin. */
  allowedOrigins: string[]
  /** Its organization has addresses recorded as their networks only. */
  shortensAddresses: boolean
}

export interface SecretPrincipal extends OfKey, OfCaller {
  type: 'secret'
  /** Allowed origins of the publishable keys of its organization and environment. */
  origins: readonly string[]
}

/** Somebody who is logged in to the console, in the environment that the request names. */
export interface PersonPrincipal extends OfCaller {
  type: 'person'
  consoleSessionId: ConsoleSessionId
  /** All that the session was given; the request names one of them. */
  environments: readonly Environment[]
}

export interface KeyRecord {
  principal: KeyPrincipal
  status: 'active' | 'rotating' | 'revoked'
  /** Epoch milliseconds. A rotating key stops working here. */
  graceExpiresAt: number | null
  organizationStatus: 'active' | 'suspended' | 'deleted'
}

/** Scopes of a secret key. `*` stands for all of them, also those to come. */
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

/** A secret key without stored scopes has these. */
export const defaultScopes: Scope[] = ['sessions:read', 'sessions:update', 'fingerprints:read']

/** A route asks its caller for an API key, or for one of Gate's tokens. */
export type Access = KeyAccess | { token: 'poll' | 'agent' }

export interface KeyAccess {
  keyType: 'secret' | 'publishable'
  scope?: string
  /** The path names an organization, which must be the key's own. */
  ownOrganization?: boolean
}

/** A setting of live and test together, so that changing it needs rights in live. */
export interface SharedSetting {
  /** Begins the refusal: `Agent directories` of "Agent directories apply to live and test; use a live key." */
  subject: string
  /** The published contract lets test keys change it. Console sessions still need live. */
  allowsTestKeys?: true
}

const declared = new WeakMap<object, Access>()

/** Marks a hook with what it enforces. The interface description is made from the mark. */
export function enforcing<Hook extends onRequestHookHandler>(access: Access, hook: Hook): Hook {
  declared.set(hook, access)
  return hook
}

export function accessOf({ onRequest }: Pick<RouteOptions, 'onRequest'>): Access | undefined {
  const hooks = onRequest === undefined ? [] : [onRequest].flat()
  return hooks.map((hook) => declared.get(hook)).find((access) => access !== undefined)
}
