import { defaultScopes } from '../../infra/access/scopes.ts'
import { checkedName, invalid } from '../../infra/http/checked-fields.ts'
import type { ApiKeyIssued, ClientTarget, Environment, KeyType } from '../../schemas/events.ts'
import { bounds, checkedOrigins, checkedScopes } from './checked-fields.ts'

/** What a caller may ask for; what it leaves out has a default (see `completeKeyRequest`). */
export interface KeyRequest {
  name: string
  environment: Environment
  type?: KeyType | undefined
  allowedOrigins?: string[] | undefined
  /** Needs `type`. */
  scopes?: string[] | undefined
  /** Default browser; publishable keys only. */
  clientTarget?: ClientTarget | undefined
}

/** A checked request, normalised. */
export type KeySpec = Pick<
  ApiKeyIssued,
  'name' | 'type' | 'environment' | 'client_target' | 'allowed_origins' | 'scopes'
>

const parameterSet = 'api_key_create'
const publishableOnly = { issue: 'not_allowed', expected: 'publishable keys only' }

/**
 * The request with its defaults: a name alone makes a secret key with the narrow scopes, allowed origins or a client
 * target without a type make a publishable key. 422 naming the field that does not fit.
 */
export function completeKeyRequest(request: KeyRequest): KeySpec {
  if (request.scopes && !request.type) {
    throw invalid(
      { name: 'type', issue: 'required', expected: 'secret, where scopes are given' },
      parameterSet,
    )
  }
  const type = request.type ?? (request.allowedOrigins || request.clientTarget ? 'publishable' : 'secret')
  const name = checkedName(request.name, { max: bounds.keyName, parameterSet })
  const base = { name, type, environment: request.environment }
  if (type === 'publishable') return { ...base, scopes: null, ...publishableParts(request) }
  return { ...base, client_target: 'browser', allowed_origins: null, scopes: secretScopes(request) }
}

function publishableParts(request: KeyRequest): Pick<KeySpec, 'client_target' | 'allowed_origins'> {
  const { environment, allowedOrigins = [], clientTarget = 'browser' } = request
  if (request.scopes) {
    throw invalid({ name: 'scopes', issue: 'not_allowed', expected: 'secret keys only' }, parameterSet)
  }
  if (clientTarget !== 'browser' && request.allowedOrigins) {
    const expected = 'browser keys only'
    throw invalid({ name: 'allowed_origins', issue: 'not_allowed', expected }, parameterSet)
  }
  const origins = checkedOrigins(allowedOrigins, { environment, parameterSet })
  return { client_target: clientTarget, allowed_origins: origins }
}

function secretScopes({ type, scopes, allowedOrigins, clientTarget }: KeyRequest): string[] {
  if (allowedOrigins) throw invalid({ name: 'allowed_origins', ...publishableOnly }, parameterSet)
  if (clientTarget) throw invalid({ name: 'client_target', ...publishableOnly }, parameterSet)
  if (scopes) return checkedScopes(scopes, parameterSet)
  if (type === undefined) return [...defaultScopes]
  throw invalid({ name: 'scopes', issue: 'required', expected: 'at least one scope' }, parameterSet)
}
