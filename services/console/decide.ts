import { effectiveScopes, isKeyOver } from '../../infra/access/key-checks.ts'
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
] as const satisfies Scope[]

/** A role is a named set of scopes. Nobody has one without being given it. */
export const roles = { viewer, analyst, admin: ['*'] } as const satisfies Record<
  string,
  readonly Scope[]
>
export type ConsoleRole = keyof typeof roles
export const roleNames = Object.keys(roles) as [ConsoleRole, ...ConsoleRole[]]

const minute = 60 * 1000
const hour = 60 * minute
const day = 24 * hour
export const codeMs = 5 * minute
/** A link that was used or has expired is told from a wrong one for so long. */
export const codeDeletedAfterMs = day
const idleMs = 12 * hour
export const longestMs = 7 * day
/** For so long it is known who a session was. */
export const deletedAfterMs = 30 * day
/** When a session was used last is written down so seldom. */
export const touchMs = minute

/** A session that began with a secret key may what the key may, and as long. */
export type Rights =
  | { role: ConsoleRole }
  | ({ keyId: KeyId; scopes: readonly string[] } & Pick<KeyRecord, 'status' | 'graceExpiresAt'>)

export interface ConsoleSession {
  id: ConsoleSessionId
  /** What the person is called, or the key. */
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

export function isOver(
  { endedAt, rights, organization, ...session }: ConsoleSession,
  now: number,
): boolean {
  if (endedAt !== null || organization.status !== 'active') return true
  return expiresAt(session) <= now || ('keyId' in rights && isKeyOver(rights, now))
}

export const expiresAt = ({
  createdAt,
  lastUsedAt,
}: Pick<ConsoleSession, 'createdAt' | 'lastUsedAt'>) =>
  Math.min(lastUsedAt + idleMs, createdAt + longestMs)

export const scopesOf = ({ rights }: Pick<ConsoleSession, 'rights'>): readonly string[] =>
  'role' in rights ? roles[rights.role] : effectiveScopes(rights.scopes)

export const environmentHeader = 'tidegate-environment'

/** The environment that a request names. 422 where it names none, 403 for one that the session was not given. */
export function chosenEnvironment(
  { environments }: Pick<ConsoleSession, 'environments'>,
  named: string | string[] | undefined,
): Environment {
  if (named !== 'live' && named !== 'test') {
    const field = { name: 'Tidegate-Environment', issue: 'invalid', expected: 'live or test' }
    throw invalidField(field, { header_name: field.name })
  }
  if (environments.includes(named)) return named
  throw consoleRefusal(`The console session was not given the environment ${named}.`)
}

export const consoleRefusal = (message: string) => new ApiError('console.refused', { message })
