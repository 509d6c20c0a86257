import { type ApiError, type FieldIssue, invalidField } from '../../../infra/errors/errors.ts'
import { characterCount, isOneLine, isVisible } from '../../../infra/text.ts'
import type { Environment } from '../../../schemas/events.ts'
import { isServiceId } from './registered.ts'

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
  return invalidField({ name, ...problem }, { parameter_set: parameterSet }, 'gate.validation_failed')
}

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

interface TextRule {
  max: number
  lines?: number
  // Keeps outer spaces, for drawings.
  untrimmed?: boolean
}

/**
 * Trimmed, with \n at the end of lines. 422 for what shows nothing, is too long, or has control or direction
 * characters: with those one name reads as another.
 */
export function checkedText(
  text: string,
  member: FieldMember,
  { max, lines = 1, untrimmed }: TextRule,
): string {
  const unified = text.replaceAll('\r\n', '\n')
  const kept = untrimmed ? unified : unified.trim()
  const split = kept.split('\n')
  const fits = characterCount(kept) <= max && split.length <= lines
  if (fits && isVisible(kept) && split.every(isOneLine)) return kept
  throw refusedMember(member, { issue: 'invalid', expected: expectedOf({ max, lines }) })
}

function expectedOf({ max, lines }: { max: number; lines: number }): string {
  const size = lines > 1 ? `1-${max} characters in at most ${lines} lines` : `1-${max} characters in one line`
  return `${size}, no control or direction characters`
}

// As RFC 3986 writes it, with nothing before the host: what a person reads is where a browser goes.
const uri =
  /^https?:\/\/(\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?(?:[/?](?:[\w.~:/?@!$&'()*+,;=-]|%[\da-f]{2})*)?(?:#(?:[\w.~:/?@!$&'()*+,;=-]|%[\da-f]{2})*)?$/i

/** The URL as it was sent. 422 for anything but an absolute https URL. */
export function checkedServiceUrl(text: string, member: FieldMember): string {
  if (text.length <= serviceBounds.url && isUrl(text, member.environment)) return text
  const schemes = member.environment === 'test' ? 'http or https' : 'https'
  const expected = `an absolute ${schemes} URL of at most ${serviceBounds.url} characters, percent-encoded, without a user name`
  throw refusedMember(member, { issue: 'invalid', expected })
}

// http is for the test environment: developers run services on their own machines.
function isUrl(text: string, environment: Environment): boolean {
  const host = uri.exec(text)?.[1]?.toLowerCase()
  const url = URL.parse(text)
  if (host === undefined || url === null) return false
  // The host is written as it is reached: not 127.1, nor with digits that mean others.
  if (url.hostname !== host) return false
  return url.protocol === 'https:' || environment === 'test'
}
