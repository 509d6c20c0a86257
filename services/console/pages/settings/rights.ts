import type { ApiKey } from '../../../organizations/schemas.ts'

/** What a key may do, in words. */
export function rightsOf({
  type,
  scopes,
  allowed_origins: origins,
  client_target: target,
}: ApiKey): string {
  if (type === 'secret') return scopesInWords(scopes ?? [])
  if (target !== 'browser') return 'send sessions from an app'
  return `send sessions from ${origins?.length ? origins.join(', ') : 'any origin'}`
}

/** `list, read sessions; manage api keys` of `sessions:list`, `sessions:read` and `api_keys:manage`. */
function scopesInWords(scopes: readonly string[]): string {
  if (scopes.includes('*')) return 'everything'
  const actions = new Map<string, string[]>()
  for (const scope of scopes) {
    const parts = scope.replaceAll('_', ' ').split(':')
    const thing = parts.slice(0, -1).join(' ')
    actions.set(thing, [...(actions.get(thing) ?? []), parts.at(-1) ?? ''])
  }
  return [...actions].map(([thing, all]) => `${all.join(', ')} ${thing}`).join('; ')
}
