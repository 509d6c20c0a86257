import { defaultScopes, scopes } from '../../infra/access/principal.ts'
import type { Environment } from '../../schemas/events.ts'
import type { KeyRequest } from '../../services/organizations/checked-input.ts'
import type { Example } from './endpoint.ts'
import { answered, type Cell, refused } from './expected.ts'

/** A key that may manage keys, and gives a command about another. */
export interface KeyCaller {
  name: string
  environment: Environment
  scopes: string[]
}

const manage = 'api_keys:manage'

export const keyCallers: KeyCaller[] = [
  { name: 'a live key with *', environment: 'live', scopes: ['*'] },
  { name: 'a test key with *', environment: 'test', scopes: ['*'] },
  {
    name: 'a live key with every scope but *',
    environment: 'live',
    scopes: scopes.filter((scope) => scope !== '*'),
  },
  { name: 'a live key that may manage keys alone', environment: 'live', scopes: [manage] },
  {
    name: 'a test key that may read sessions, too',
    environment: 'test',
    scopes: [manage, 'sessions:read'],
  },
]

/** A key to make, or to change and end. */
export interface KeyTarget {
  name: string
  request: KeyRequest
  /** Scopes of the key; a publishable key has none. */
  scopes: readonly string[]
}

const kinds: (Pick<KeyTarget, 'name' | 'scopes'> & { request: Partial<KeyRequest> })[] = [
  { name: 'publishable key', request: { type: 'publishable' }, scopes: [] },
  { name: 'key with *', request: { type: 'secret', scopes: ['*'] }, scopes: ['*'] },
  { name: 'key of a name alone', request: {}, scopes: defaultScopes },
  {
    name: 'key that reads sessions',
    request: { type: 'secret', scopes: ['sessions:read'] },
    scopes: ['sessions:read'],
  },
]

export const keyTargets: KeyTarget[] = (['live', 'test'] as const).flatMap((environment) =>
  kinds.map(({ name, request, scopes: has }) => ({
    name: `a ${environment} ${name}`,
    request: { name: 'Target', environment, ...request },
    scopes: has,
  })),
)

interface KeyAct {
  name: 'create' | 'rename' | 'rotate' | 'widen' | 'revoke'
  example: (about: { organizationId: string; keyId: string; target: KeyTarget }) => Example
}

/** An act on the key, at a path below it. */
const onKey =
  (method: Example['method'], rest = '', body?: object): KeyAct['example'] =>
  ({ organizationId, keyId }) => ({
    method,
    url: `/v1/organizations/${organizationId}/api-keys/${keyId}${rest}`,
    ...(body && { body }),
  })

/** In the order in which one key can have them happen to it. */
export const keyActs: KeyAct[] = [
  {
    name: 'create',
    example: ({ organizationId, target: { request: body } }) => ({
      method: 'POST',
      url: `/v1/organizations/${organizationId}/api-keys`,
      body,
    }),
  },
  { name: 'rename', example: onKey('PATCH', '', { name: 'Renamed' }) },
  { name: 'rotate', example: onKey('POST', '/rotations') },
  { name: 'widen', example: onKey('PATCH', '', { scopes: ['*'] }) },
  { name: 'revoke', example: onKey('DELETE') },
]

/** A key gives, rotates and changes within its own scopes, and revokes any; a test key does nothing to live ones. */
export function expectedGrants(caller: KeyCaller, target: KeyTarget): Record<KeyAct['name'], Cell> {
  const isBeyond = caller.environment === 'test' && target.request.environment === 'live'
  const all = caller.scopes.includes('*')
  const within = all || target.scopes.every((scope) => caller.scopes.includes(scope))
  const lacking = refused('auth.insufficient_scope', true)
  const told = (success: number) => {
    if (isBeyond) return answered(404)
    return within ? answered(success) : lacking
  }
  const scoped = all ? answered(200) : lacking
  const widened = target.request.type === 'publishable' ? answered(422) : scoped
  return {
    create: isBeyond ? answered(422) : told(201),
    rename: told(200),
    rotate: told(201),
    widen: within && !isBeyond ? widened : told(200),
    revoke: answered(isBeyond ? 404 : 200),
  }
}
