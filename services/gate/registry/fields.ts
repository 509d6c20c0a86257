import { type ApiError, type FieldIssue, invalidField } from '../../../infra/errors/errors.ts'
import { characterCount, isOneLine, isVisible } from '../../../infra/text.ts'
import type { Environment, GateServiceDefinition } from '../../../schemas/events.ts'

/** Texts in characters (code points), the whole definition in bytes of JSON. */
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

/** What a definition has where the service says nothing. */
export const unset = {
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

/** A field of a request, such as `env_vars.0.key`, and what it is checked against. */
export interface FieldMember extends FieldRules {
  field: string
}

export const below = (member: FieldMember, name: string | number): FieldMember => ({
  ...member,
  field: `${member.field}.${name}`,
})

/** 422 that names the field and does not quote what was sent. */
export function refusedMember(
  { field: name, parameterSet }: Pick<FieldMember, 'field' | 'parameterSet'>,
  problem: Omit<FieldIssue, 'name' | 'received'>,
): ApiError {
  return invalidField(
    { name, ...problem },
    { parameter_set: parameterSet },
    'gate.validation_failed',
  )
}

/** Whether it has the form of an id. A reserved word has it, too, and `checkedServiceId` refuses those. */
export const isServiceId = (text: string): boolean =>
  /^[a-z0-9][a-z0-9_-]{1,30}[a-z0-9]$/.test(text)

// Words of Gate's own paths and commands.
const reserved = ['gate', 'registry', 'services', 'webhook']

export function checkedServiceId(id: string, { parameterSet }: FieldRules): string {
  if (!isServiceId(id)) {
    const expected = '3-32 lower-case letters, digits, - and _, with a letter or digit at both ends'
    throw refusedMember({ field: 'id', parameterSet }, { issue: 'invalid', expected })
  }
  if (!reserved.includes(id)) return id
  throw refusedMember(
    { field: 'id', parameterSet },
    { issue: 'reserved', expected: `none of ${reserved.join(', ')}` },
  )
}

/**
 * Trimmed, unless it is `untrimmed` as drawings are, with \n at the end of lines. 422 for what shows nothing, is too
 * long, or has control or direction characters, because with those one name reads as another.
 */
export function checkedText(
  text: string,
  member: FieldMember,
  { max, lines = 1, untrimmed }: { max: number; lines?: number; untrimmed?: boolean },
): string {
  const unified = text.replaceAll('\r\n', '\n')
  const checked = untrimmed ? unified : unified.trim()
  const split = checked.split('\n')
  const fits = characterCount(checked) <= max && split.length <= lines
  if (fits && isVisible(checked) && split.every(isOneLine)) return checked
  const size =
    lines > 1 ? `1-${max} characters in at most ${lines} lines` : `1-${max} characters in one line`
  const expected = `${size}, no control or direction characters`
  throw refusedMember(member, { issue: 'invalid', expected })
}

// As RFC 3986 writes it, with nothing before the host, so that a browser goes where a person reads that it does.
const uri =
  /^https?:\/\/(\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?(?:[/?](?:[\w.~:/?@!$&'()*+,;=-]|%[\da-f]{2})*)?(?:#(?:[\w.~:/?@!$&'()*+,;=-]|%[\da-f]{2})*)?$/i

/** The URL as it was sent. 422 for anything but an absolute https URL. */
export function checkedServiceUrl(text: string, member: FieldMember): string {
  if (text.length <= serviceBounds.url && isUrl(text, member.environment)) return text
  const schemes = member.environment === 'test' ? 'http or https' : 'https'
  const expected = `an absolute ${schemes} URL of at most ${serviceBounds.url} characters, percent-encoded, without a user name`
  throw refusedMember(member, { issue: 'invalid', expected })
}

// http is for the test environment, because developers run services on their own machines.
function isUrl(text: string, environment: Environment): boolean {
  const host = uri.exec(text)?.[1]?.toLowerCase()
  const url = URL.parse(text)
  if (host === undefined || url === null) return false
  // The host has to be written as it is reached. That excludes 127.1, and digits of other scripts.
  if (url.hostname !== host) return false
  return url.protocol === 'https:' || environment === 'test'
}
