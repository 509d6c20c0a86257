import { effectiveScopes, isKeyUnusable } from '../../infra/access/key-checks.ts'
import type { KeyRecord, Scope } from '../../infra/access/principal.ts'
import { ApiError, invalidField } from '../../infra/errors/errors.ts'
import type { ConsoleSessionId, KeyId, OrganizationId } from '../../infra/ids.ts'
import type { Environment } from '../../schemas/events.ts'

const viewer = [
  'sessions:list',
  'sessions:read',
  'fingerprints:list',
  'fingerprints:read',
  'organizations:read',
  'api_keys:read',
  'webhooks:read',
  'gate:services:read',
] as const satisfies Scope[]

const analyst = [
  ...viewer,
  'sessions:update',
  'sessions:mark',
  'visitors:export',
  'visitors:manage',
  'views:manage',
] as const satisfies Scope[]

/** Named sets of scopes. There is no default role. */
export const roles = { viewer, analyst, admin: ['*'] } as const satisfies Record<
  string,
  readonly Scope[]
>
export type ConsoleRole = keyof typeof roles
export const roleNames = Object.keys(roles) as [ConsoleRole, ...ConsoleRole[]]

const minute = 60 * 1000
const hour = 60 * minute
const day = 24 * hour
export const codeLifetimeMs = 5 * minute
export const maxIdleMs = 12 * hour
export const maxSessionMs = 7 * day
/** Session rows contain the person's name, so they are deleted after this time. */
export const sessionRetentionMs = 30 * day
/** Minimum interval between updates of `last_used_at`. */
export const touchIntervalMs = minute

/** Permissions of a session: those of a role, or of the secret key used to sign in, as long as the key is valid. */
export type Rights =
  | { role: ConsoleRole }
  | ({ keyId: KeyId; scopes: readonly string[] } & Pick<KeyRecord, 'status' | 'endsAt'>)

export interface ConsoleSession {
  id: ConsoleSessionId
  /** Name of the person or of the key. */
  name: string
  environments: Environment[]
  createdAt: number
  lastUsedAt: number
  endedAt: number | null
  rights: Rights
  organization: {
    id: OrganizationId
    name: string
    status: KeyRecord['organizationStatus']
    capabilities: readonly string[]
  }
}

export function isSessionOver(
  { endedAt, rights, organization, ...session }: ConsoleSession,
  now: number,
): boolean {
  if (endedAt !== null || organization.status !== 'active') return true
  return sessionExpiry(session) <= now || ('keyId' in rights && isKeyUnusable(rights, now))
}

/** Returns when the session ends without further use, in epoch milliseconds. */
export const sessionExpiry = ({
  createdAt,
  lastUsedAt,
}: Pick<ConsoleSession, 'createdAt' | 'lastUsedAt'>) =>
  Math.min(lastUsedAt + maxIdleMs, createdAt + maxSessionMs)

export const scopesOf = ({ rights }: Pick<ConsoleSession, 'rights'>): readonly string[] =>
  'role' in rights ? roles[rights.role] : effectiveScopes(rights.scopes)

export const environmentHeader = 'tidegate-environment'

/** Returns the environment in the header. Throws 422 if it is missing or unknown, and 403 without access to it. */
export function requestedEnvironment(
  { environments }: Pick<ConsoleSession, 'environments'>,
  header: string | string[] | undefined,
): Environment {
  if (header !== 'live' && header !== 'test') {
    const field = { name: 'Tidegate-Environment', issue: 'invalid', expected: 'live or test' }
    throw invalidField(field, { header_name: field.name })
  }
  if (environments.includes(header)) return header
  throw consoleRefusedError(`The console session has no access to the environment ${header}.`)
}

export const consoleRefusedError = (message: string) => new ApiError('console.refused', { message })
