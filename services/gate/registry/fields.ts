import { type ApiError, type FieldIssue, invalidField } from '../../../infra/errors/errors.ts'
import { characterCount, isOneLine, isVisible } from '../../../infra/text.ts'
import type { Environment, GateServiceDefinition } from '../../../schemas/events.ts'

/** Maximum lengths: texts in characters (code points), the definition in bytes of JSON. */
export const serviceBounds = {
  definitionBytes: 16 * 1024,
  name: 100,
  description: 1000,
  descriptionLines: 50,
  url: 2048,
  envVars: 50,
  envVarName: 100,
  sdks: 20,
  sdkLabel: 100,
  sdkInstall: 1000,
  sdkInstallLines: 50,
  asciiArt: 4000,
  asciiArtLines: 60,
} as const

/** Values of optional fields that are not set. */
export const serviceDefaults = {
  discoverable: false,
  dashboard_login_url: null,
  docs_url: null,
  env_vars: [],
  sdks: [],
  branding: { logo_url: null, primary_color: null, secondary_color: null, ascii_art: null },
  consent: { terms_url: null, privacy_url: null },
  claim_required: false,
  minimum_verdict: null,
} satisfies Partial<GateServiceDefinition>

export interface FieldRules {
  environment: Environment
  parameterSet: 'gate_service_create' | 'gate_service_update' | 'gate_service_domain_verify'
}

/** Path of a request field, such as `env_vars.0.key`, with the rules that apply to the field. */
export interface ServiceField extends FieldRules {
  field: string
}

export const nested = (member: ServiceField, name: string | number): ServiceField => ({
  ...member,
  field: `${member.field}.${name}`,
})

/** Returns a 422 that names the field without quoting what was sent. */
export function fieldError(
  { field: name, parameterSet }: Pick<ServiceField, 'field' | 'parameterSet'>,
  problem: Omit<FieldIssue, 'name' | 'received'>,
): ApiError {
  return invalidField(
    { name, ...problem },
    { parameter_set: parameterSet },
    'gate.validation_failed',
  )
}

/** Returns true for a well-formed id, even if it is reserved. */
export const isServiceId = (text: string): boolean =>
  /^[a-z0-9][a-z0-9_-]{1,30}[a-z0-9]$/.test(text)

// Used in Gate's own paths and CLI commands.
const reservedIds = ['gate', 'registry', 'services', 'webhook']

/** Throws 422 if the id is malformed or reserved. */
export function checkedServiceId(id: string, { parameterSet }: FieldRules): string {
  if (!isServiceId(id)) {
    const expected = '3-32 lower-case letters, digits, - and _, with a letter or digit at both ends'
    throw fieldError({ field: 'id', parameterSet }, { issue: 'invalid', expected })
  }
  if (!reservedIds.includes(id)) return id
  throw fieldError(
    { field: 'id', parameterSet },
    { issue: 'reserved', expected: `none of ${reservedIds.join(', ')}` },
  )
}

/**
 * Returns the text with \n line ends, trimmed unless `untrimmed` is set (for ASCII art). Throws 422 if it is blank, too
 * long, or has control or bidi characters, which can make one name look like another.
 */
export function checkedText(
  text: string,
  member: ServiceField,
  { max, lines = 1, untrimmed }: { max: number; lines?: number; untrimmed?: boolean },
): string {
  const unified = text.replaceAll('\r\n', '\n')
  const checked = untrimmed ? unified : unified.trim()
  const textLines = checked.split('\n')
  const isShort = characterCount(checked) <= max && textLines.length <= lines
  if (isShort && isVisible(checked) && textLines.every(isOneLine)) return checked
  const size =
    lines > 1 ? `1-${max} characters in at most ${lines} lines` : `1-${max} characters in one line`
  const expected = `${size}, no control or direction characters`
  throw fieldError(member, { issue: 'invalid', expected })
}

// RFC 3986 without user information, which could disguise the host.
const uri =
  /^https?:\/\/(\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?(?:[/?](?:[\w.~:/?@!$&'()*+,;=-]|%[\da-f]{2})*)?(?:#(?:[\w.~:/?@!$&'()*+,;=-]|%[\da-f]{2})*)?$/i

/** Returns the URL unchanged. Throws 422 unless it is an absolute https URL, or http in the test environment. */
export function checkedServiceUrl(text: string, member: ServiceField): string {
  if (text.length <= serviceBounds.url && isUrl(text, member.environment)) return text
  const schemes = member.environment === 'test' ? 'http or https' : 'https'
  const expected = `an absolute ${schemes} URL of at most ${serviceBounds.url} characters, percent-encoded, without a user name`
  throw fieldError(member, { issue: 'invalid', expected })
}

// Test services can use http, because developers run them locally.
function isUrl(text: string, environment: Environment): boolean {
  const host = uri.exec(text)?.[1]?.toLowerCase()
  const url = URL.parse(text)
  if (host === undefined || url === null) return false
  // Rejects hosts that a browser would rewrite, such as 127.1 or one with digits of other scripts.
  if (url.hostname !== host) return false
  return url.protocol === 'https:' || environment === 'test'
}
