import { type ErrorCode, errorTable } from '../../infra/errors/errors.ts'
import type { Credential } from './credential.ts'
import type { Endpoint } from './endpoint.ts'

/** An operation's authorization in the API description. */
export interface Operation {
  keyType: Credential['type']
  scope: string | undefined
  ownOrganization: boolean
}

/** Expected response of a cell of the matrix. */
export interface Cell {
  status: number
  code: ErrorCode | null
  /** True if the key passed verification: then units are charged and the X-RateLimit-* headers are present. */
  charged: boolean
}

/** The rules of authentication, in their order: form of the key, organization, type, origin, scope, path, data. */
export function expectedCell(
  operation: Operation,
  endpoint: Endpoint,
  credential: Credential,
): Cell {
  if (isToken(operation.keyType)) return tokenCell(operation, endpoint, credential)
  const refusal = verificationRefusal(operation, credential)
  if (refusal) return refused(refusal, false)
  const { scope } = operation
  const granted =
    credential.scopes.includes('*') || (scope !== undefined && credential.scopes.includes(scope))
  if (operation.keyType === 'secret' && !granted) return refused('auth.insufficient_scope', true)
  const elsewhere = credential.organization === 'other' || credential.environment === 'test'
  if (isForeignPlatform(operation, credential)) return refused('request.validation_failed', true)
  if (operation.ownOrganization && credential.organization === 'other') {
    return refused('auth.organization_access_denied', true)
  }
  if (endpoint.needsLive === 'everyone' && credential.environment === 'test')
    return refused('auth.live_access_required', true)
  return answered(elsewhere ? endpoint.elsewhere : endpoint.success, endpoint)
}

const isToken = (type: Credential['type']) => type === 'poll' || type === 'agent'

/** Tokens open what they were made for; nothing else does, and nobody is charged. */
function tokenCell({ keyType }: Operation, endpoint: Endpoint, { flaw, type }: Credential): Cell {
  if (flaw === 'missing') return refused(flaws.missing, false)
  if (flaw || type !== keyType) return refused(flaws.invalid, false)
  return { ...answered(endpoint.success, endpoint), charged: false }
}

const flaws = {
  missing: 'auth.missing_api_key',
  invalid: 'auth.invalid_api_key',
  inactive: 'auth.organization_inactive',
} as const

function verificationRefusal(
  { keyType }: Operation,
  credential: Credential,
): ErrorCode | undefined {
  const { flaw, type, target, origin, platform } = credential
  if (flaw) return flaws[flaw]
  if (isToken(type)) return flaws.invalid
  const native = type === 'publishable' && target !== 'browser'
  if (keyType === 'secret') {
    if (type === 'secret') return undefined
    return native ? 'auth.native_key_not_allowed' : 'auth.secret_key_required'
  }
  if (type === 'secret') return 'auth.secret_key_not_allowed'
  if (native)
    return origin === 'right' && target === `native_${platform}`
      ? undefined
      : 'auth.native_key_not_allowed'
  return origin === 'right' ? undefined : 'auth.origin_not_allowed'
}

/** A browser key opens sessions of pages and sends their bodies. */
function isForeignPlatform(
  { keyType }: Operation,
  { type, target, platform }: Credential,
): boolean {
  return (
    keyType === 'publishable' &&
    type === 'publishable' &&
    target === 'browser' &&
    platform !== 'web'
  )
}

const codes: Record<number, ErrorCode> = {
  404: 'request.not_found',
  409: 'request.conflict',
  422: 'request.validation_failed',
  410: 'session.invalid_or_expired',
}

export function answered(status: number, { gone }: Pick<Endpoint, 'gone'> = {}): Cell {
  const code = status === 410 && gone ? gone : codes[status]
  return { status, code: code ?? null, charged: true }
}

export function refused(code: ErrorCode, charged: boolean): Cell {
  return { status: errorTable[code].status, code, charged }
}
