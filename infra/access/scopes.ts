/** What a secret key may do; `*` is all of them, also those to come. */
export const scopes = [
  '*',
  'sessions:list',
  'sessions:read',
  'sessions:update',
  'fingerprints:list',
  'fingerprints:read',
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
] as const
export type Scope = (typeof scopes)[number]

/** What a secret key without stored scopes may do. */
export const defaultScopes: Scope[] = ['sessions:read', 'sessions:update', 'fingerprints:read']
