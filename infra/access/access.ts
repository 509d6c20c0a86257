import type { onRequestHookHandler, RouteOptions } from 'fastify'

/** What a route asks of its caller: an API key, or one of Gate's tokens. */
export type Access = KeyAccess | TokenAccess

export interface TokenAccess {
  token: 'poll' | 'agent'
}

export interface KeyAccess {
  keyType: 'secret' | 'publishable'
  /** The scope that a secret key must carry. */
  scope?: string
  /** The path names an organization, which must be the key's own. */
  ownOrganization?: boolean
}

const declared = new WeakMap<object, Access>()

/** Marks a hook with what it enforces, so that the interface description says what the hook does and nothing else. */
export function enforcing<Hook extends onRequestHookHandler>(access: Access, hook: Hook): Hook {
  declared.set(hook, access)
  return hook
}

/** What a route's own onRequest hooks enforce; undefined = anyone may call it. */
export function accessOf({ onRequest }: Pick<RouteOptions, 'onRequest'>): Access | undefined {
  const hooks = onRequest === undefined ? [] : [onRequest].flat()
  return hooks.map((hook) => declared.get(hook)).find((access) => access !== undefined)
}
