import { type ErrorDetails, type FieldIssue, invalidField } from '../../infra/http/errors.ts'
import { scopes as knownScopes } from '../../infra/http/scopes.ts'
import { characterCount, isPlainText } from '../../infra/text.ts'
import type { Environment } from '../../schemas/events.ts'
import { normalOrigin } from './origins.ts'

/** Which input is checked, as details.parameter_set names it. */
export type ParameterSet =
  | 'organization_create'
  | 'organization_update'
  | 'organization_limits'
  | 'organization_capability'
  | 'api_key_create'
  | 'api_key_update'
  | 'api_key_rotate'
  | 'api_key_revoke'

export const bounds = { organizationName: 120, slug: 63, keyName: 100, origins: 50 } as const

/**
 * 422 that names one field of the set. Never with what was sent, which may be a key pasted into the wrong field.
 */
export function invalid(
  field: Omit<FieldIssue, 'received'>,
  parameterSet: ParameterSet,
  details: ErrorDetails = {},
) {
  return invalidField(field, { ...details, parameter_set: parameterSet })
}

interface NameRule {
  /** Characters (code points) at most. */
  max: number
  parameterSet: ParameterSet
}

/** The name without outer spaces; 422 when nothing is left, it is too long, or it has control characters. */
export function checkedName(name: string, { max, parameterSet }: NameRule): string {
  const trimmed = name.trim()
  if (trimmed !== '' && characterCount(trimmed) <= max && isPlainText(trimmed)) return trimmed
  const expected = `1-${max} characters, no control characters`
  throw invalid({ name: 'name', issue: 'invalid', expected }, parameterSet)
}

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
