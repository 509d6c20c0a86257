import type { ApiKey } from '../../../organizations/schemas.ts'

export function describePermissions({
  type,
  scopes,
  allowed_origins: origins,
  client_target: target,
}: ApiKey): string {
  if (type === 'secret') return scopesInWords(scopes ?? [])
  if (target !== 'browser') return 'send sessions from an app'
  return `send sessions from ${origins?.length ? origins.join(', ') : 'any origin'}`
}

/** Formats `sessions:list`, `sessions:read` and `api_keys:manage` as `list, read sessions; manage api keys`. */
function scopesInWords(scopes: readonly string[]): string {
  if (scopes.includes('*')) return 'everything'
  const actions = new Map<string, string[]>()
  for (const scope of scopes) {
    const parts = scope.replaceAll('_', ' ').split(':')
    const resource = parts.slice(0, -1).join(' ')
    actions.set(resource, [...(actions.get(resource) ?? []), parts.at(-1) ?? ''])
  }
  return [...actions].map(([resource, verbs]) => `${verbs.join(', ')} ${resource}`).join('; ')
}
