import type { ClientTarget, Environment } from '../../schemas/events.ts'
import type { KeyRequest } from '../../services/organizations/checked-input.ts'
import type { World } from './world.ts'

export type Platform = 'web' | 'ios' | 'android'

/** Credential of a request, with the facts that determine the expected response. */
export interface Credential {
  name: string
  headers: Record<string, string>
  /** Why it is no credential at all. */
  flaw?: 'missing' | 'invalid' | 'inactive'
  /** A key, or one of Gate's tokens. */
  type: 'secret' | 'publishable' | 'poll' | 'agent'
  target: ClientTarget
  scopes: readonly string[]
  organization: 'own' | 'other'
  environment: Environment
  /** Origin of the request, for a browser key with allowed origins or a native key sent from a page. */
  origin: 'right' | 'wrong'
  /** The SDK that sends collect bodies. */
  platform: Platform
}

/** The organization that the requests are about, and one more. */
export interface Tenants {
  own: string
  other: string
}

const usual = {
  headers: {},
  type: 'secret',
  target: 'browser',
  scopes: ['*'],
  organization: 'own',
  environment: 'live',
  origin: 'right',
  platform: 'web',
} as const

/** A secret key that may do everything, but for these facts. */
export function credential(name: string, facts: Partial<Credential>): Credential {
  return { ...usual, name, ...facts }
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Header of a new secret key with all scopes. */
export async function secretKey(
  world: World,
  request: Partial<KeyRequest> & { organizationId: string },
) {
  const { revealedKey } = await world.issue({ type: 'secret', scopes: ['*'], ...request })
  return bearer(revealedKey)
}

/** Header of a new publishable key. */
export async function publishableKey(
  world: World,
  request: Partial<KeyRequest> & { organizationId: string },
) {
  const { revealedKey } = await world.issue({ type: 'publishable', ...request })
  return bearer(revealedKey)
}
