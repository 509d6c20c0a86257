import { defaultScopes, scopes as knownScopes } from '../../infra/access/principal.ts'
import { checkAll, checkEach, checkPresent } from '../../infra/errors/check-all.ts'
import { checkedName, invalid, type ParameterSet } from '../../infra/http/checked-fields.ts'
import type { ApiKeyIssued, ClientTarget, Environment, KeyType } from '../../schemas/events.ts'

export const inputLimits = { organizationName: 120, slug: 63, keyName: 100, origins: 50 } as const

export function completeOrganizationRequest(request: { name: string; slug: string }) {
  const parameterSet = 'organization_create'
  return checkAll({
    name: () => checkedName(request.name, { max: inputLimits.organizationName, parameterSet }),
    slug: () => checkedSlug(request.slug, parameterSet),
  })
}

/** Throws 422 naming the invalid fields among those that are present. */
export function checkOrganizationFields(
  { name, slug }: { name?: string | undefined; slug?: string | undefined },
  parameterSet: ParameterSet,
): void {
  const max = inputLimits.organizationName
  checkPresent<{ name: string; slug: string }>({
    name: name !== undefined && (() => checkedName(name, { max, parameterSet })),
    slug: slug !== undefined && (() => checkedSlug(slug, parameterSet)),
  })
}

function checkedSlug(slug: string, parameterSet: ParameterSet): string {
  if (/^[a-z0-9-]{1,63}$/.test(slug)) return slug
  const expected = `1-${inputLimits.slug} lower-case letters, digits and hyphens`
  throw invalid({ name: 'slug', issue: 'invalid', expected }, parameterSet)
}

export interface KeyRequest {
  name: string
  environment: Environment
  type?: KeyType | undefined
  allowed_origins?: string[] | undefined
  scopes?: string[] | undefined
  client_target?: ClientTarget | undefined
  /** Epoch milliseconds; null: never; undefined: as late as the organization allows. */
  expires_at?: number | null | undefined
}

export type KeySpec = Pick<
  ApiKeyIssued,
  'name' | 'type' | 'environment' | 'client_target' | 'allowed_origins' | 'scopes'
> &
  Pick<KeyRequest, 'expires_at'>

const keyCreation = 'api_key_create'

/**
 * Returns the key with defaults: a secret key with the default scopes if only a name is set, a publishable key if there
 * are allowed origins or a client target. Throws 422 naming every invalid field.
 */
export function completeKeyRequest(request: KeyRequest): KeySpec {
  const type = request.type ?? impliedType(request)
  const { name, parts } = checkAll({
    type: () => requireType(request),
    name: () => checkedName(request.name, { max: inputLimits.keyName, parameterSet: keyCreation }),
    parts: () => (type === 'publishable' ? publishableParts(request) : secretParts(request)),
  })
  const { environment, expires_at } = request
  return { name, type, environment, expires_at, ...parts }
}

function impliedType({ scopes, allowed_origins, client_target }: KeyRequest): KeyType {
  return !scopes && (allowed_origins || client_target) ? 'publishable' : 'secret'
}

function requireType({ scopes, type }: KeyRequest): void {
  if (!scopes || type) return
  throw invalid(
    { name: 'type', issue: 'required', expected: 'secret, because scopes are given' },
    keyCreation,
  )
}

type KeyParts = Pick<KeySpec, 'client_target' | 'allowed_origins' | 'scopes'>

function publishableParts(request: KeyRequest): KeyParts {
  const { scopes, client_target = 'browser' } = request
  const { origins } = checkAll({
    scopes: () => requireAbsent(scopes, 'scopes', 'secret keys only'),
    origins: () => validOrigins(request),
  })
  return { scopes: null, client_target, allowed_origins: origins }
}

function validOrigins({
  environment,
  allowed_origins,
  client_target = 'browser',
}: KeyRequest): string[] {
  if (client_target !== 'browser')
    requireAbsent(allowed_origins, 'allowed_origins', 'browser keys only')
  return checkedOrigins(allowed_origins ?? [], { environment, parameterSet: keyCreation })
}

function secretParts(request: KeyRequest): KeyParts {
  const { allowed_origins, client_target } = request
  const { scopes } = checkAll({
    origins: () => requireAbsent(allowed_origins, 'allowed_origins', 'publishable keys only'),
    target: () => requireAbsent(client_target, 'client_target', 'publishable keys only'),
    scopes: () => validScopes(request),
  })
  return { client_target: 'browser', allowed_origins: null, scopes }
}

function validScopes({ type, scopes }: KeyRequest): string[] {
  if (scopes) return checkedScopes(scopes, keyCreation)
  if (type === undefined) return [...defaultScopes]
  throw invalid({ name: 'scopes', issue: 'required', expected: 'at least one scope' }, keyCreation)
}

function requireAbsent(value: unknown, name: string, expected: string): void {
  if (value !== undefined) throw invalid({ name, issue: 'not_allowed', expected }, keyCreation)
}

/** Throws 422 naming the fields that are invalid for every type of key. */
export function checkKeyFields(
  { name, allowed_origins }: { name?: string | undefined; allowed_origins?: string[] | undefined },
  rule: OriginRule,
): void {
  const { parameterSet } = rule
  checkPresent<{ name: string; origins: string[] }>({
    name:
      name !== undefined && (() => checkedName(name, { max: inputLimits.keyName, parameterSet })),
    origins: allowed_origins && (() => checkedOrigins(allowed_origins, rule)),
  })
}

interface OriginRule {
  environment: Environment
  parameterSet: ParameterSet
}

export function checkedOrigins(
  origins: string[],
  { environment, parameterSet }: OriginRule,
): string[] {
  if (origins.length > inputLimits.origins) {
    const expected = `at most ${inputLimits.origins}`
    throw invalid({ name: 'allowed_origins', issue: 'too_many', expected }, parameterSet)
  }
  const normalized = checkEach(origins, (text, i) => {
    const origin = normalizeOrigin(text, environment)
    if (origin) return origin
    const expected = `an ${environment === 'test' ? 'http or https' : 'https'} origin or https://*.host`
    throw invalid({ name: `allowed_origins.${i}`, issue: 'invalid', expected }, parameterSet)
  })
  return [...new Set(normalized)]
}

const dayMs = 24 * 60 * 60 * 1000

/** Returns the latest expiry that the maximum lifetime allows; null without a maximum. */
export const latestExpiry = (maxDays: number | null, now: number): number | null =>
  maxDays === null ? null : now + maxDays * dayMs

/**
 * Returns the expiry of a key that is issued or changed at `now`. Defaults to the organization's maximum lifetime. Throws
 * 422 for a time in the past, and for one beyond the maximum.
 */
export function checkedExpiry(
  expiresAt: number | null | undefined,
  {
    maxDays,
    now,
    parameterSet,
  }: { maxDays: number | null; now: number; parameterSet: ParameterSet },
): number | null {
  const latest = latestExpiry(maxDays, now)
  if (expiresAt === undefined) return latest
  const isPast = expiresAt !== null && expiresAt <= now
  const isTooLate = latest !== null && (expiresAt === null || expiresAt > latest)
  if (!isPast && !isTooLate) return expiresAt
  const limit = maxDays === null ? '' : ` within ${maxDays} days, the maximum of this organization`
  const expected = `a time in the future${limit}`
  throw invalid({ name: 'expires_at', issue: 'invalid', expected }, parameterSet)
}

export function checkedScopes(scopes: string[], parameterSet: ParameterSet): string[] {
  if (scopes.length === 0) {
    throw invalid(
      { name: 'scopes', issue: 'required', expected: 'at least one scope' },
      parameterSet,
    )
  }
  const allowed_values: string[] = [...knownScopes]
  const checked = checkEach(scopes, (scope, i) => {
    if (allowed_values.includes(scope)) return scope
    const field = {
      name: `scopes.${i}`,
      issue: 'invalid_value',
      expected: 'one of allowed_values',
    }
    throw invalid(field, parameterSet, { allowed_values })
  })
  return [...new Set(checked)]
}

/**
 * Returns an allowed origin as it is stored: lower case, punycode, no default port, no trailing slash. Live keys allow
 * `https://host[:port]` and `https://*.host`; test keys also allow exact http origins. Returns undefined for others.
 */
export function normalizeOrigin(text: string, environment: Environment): string | undefined {
  const wildcard = /^https:\/\/\*\.([^:]+)$/i.exec(text)
  if (wildcard?.[1]) {
    const host = exactOrigin(`https://${wildcard[1]}`)
    // A wildcard under a top-level domain or an IP address is always a mistake.
    return host && isDomain(host) ? host.replace('https://', 'https://*.') : undefined
  }
  const origin = exactOrigin(text)
  if (!origin) return undefined
  return environment === 'test' || origin.startsWith('https://') ? origin : undefined
}

function exactOrigin(text: string): string | undefined {
  if (!/^https?:\/\/[^/?#@\\*\s]+\/?$/i.test(text) || !URL.canParse(text)) return undefined
  return new URL(text).origin
}

function isDomain(origin: string): boolean {
  return /^https:\/\/([a-z0-9-]+\.)+[a-z][a-z0-9-]*$/.test(origin)
}
