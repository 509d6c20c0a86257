import { scopes as knownScopes } from '../../infra/access/scopes.ts'
import { invalid, type ParameterSet } from '../../infra/http/checked-fields.ts'
import type { Environment } from '../../schemas/events.ts'
import { normalOrigin } from './origins.ts'

export const bounds = { organizationName: 120, slug: 63, keyName: 100, origins: 50 } as const

/** 1-63 lower-case letters, digits and hyphens; else 422. */
export function checkedSlug(slug: string, parameterSet: ParameterSet): string {
  if (/^[a-z0-9-]{1,63}$/.test(slug)) return slug
  const expected = `1-${bounds.slug} lower-case letters, digits and hyphens`
  throw invalid({ name: 'slug', issue: 'invalid', expected }, parameterSet)
}

interface OriginRule {
  environment: Environment
  parameterSet: ParameterSet
}

/** The origins as stored, each once; 422 naming the first that cannot be one, or that there are too many. */
export function checkedOrigins(origins: string[], { environment, parameterSet }: OriginRule): string[] {
  if (origins.length > bounds.origins) {
    const expected = `at most ${bounds.origins}`
    throw invalid({ name: 'allowed_origins', issue: 'too_many', expected }, parameterSet)
  }
  const normal = origins.map((text, i) => {
    const origin = normalOrigin(text, environment)
    if (origin) return origin
    const expected = `an ${environment === 'test' ? 'http or https' : 'https'} origin or https://*.host`
    throw invalid({ name: `allowed_origins.${i}`, issue: 'invalid', expected }, parameterSet)
  })
  return [...new Set(normal)]
}

/** The scopes, each once; 422 when there is none or one is unknown. */
export function checkedScopes(scopes: string[], parameterSet: ParameterSet): string[] {
  if (scopes.length === 0) {
    throw invalid({ name: 'scopes', issue: 'required', expected: 'at least one scope' }, parameterSet)
  }
  const known: readonly string[] = knownScopes
  const unknown = scopes.findIndex((scope) => !known.includes(scope))
  if (unknown < 0) return [...new Set(scopes)]
  const field = { name: `scopes.${unknown}`, issue: 'invalid_value', expected: 'a scope of this version' }
  throw invalid(field, parameterSet, { allowed_values: [...known] })
}
