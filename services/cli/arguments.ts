import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { isId } from '../../infra/ids.ts'
import { isSigningSecret } from '../../infra/wire/webhooks/signature.ts'
import { eventTopics } from '../../schemas/events.ts'

export const jsonFlag = ['--json', 'print one JSON document', false] as const

export function choice<Word extends string>(...words: Word[]): (text: string) => Word {
  return (text) => {
    const word = words.find((word) => word === text)
    if (word) return word
    throw new InvalidArgumentError(`It must be one of ${words.join(', ')}.`)
  }
}

/** Throws if the list is empty, as with an unset variable in a script. */
export function commaList(text: string): string[] {
  const parts = text.split(',').map((part) => part.trim())
  const values = parts.filter(Boolean)
  if (values.length === 0) throw new InvalidArgumentError('It must have at least one value.')
  return values
}

/** Parses a rate limit in units per 60 seconds. */
export function limit(text: string): number | 'default' {
  return text === 'default' ? text : rateUnits(text)
}

const idSubjects = {
  evt: 'an event',
  we: 'an endpoint',
  wdlv: 'a delivery',
  org: 'an organization',
  sid: 'a session',
  gate: 'a signup',
}

export function idArgument(prefix: keyof typeof idSubjects): (text: string) => string {
  return (text) => {
    if (isId(prefix, text)) return text
    throw new InvalidArgumentError(`It must be the id of ${idSubjects[prefix]} (${prefix}_...).`)
  }
}

const isEventType = (text: string) => Object.hasOwn(eventTopics, text)

export function eventType(text: string): string {
  if (isEventType(text)) return text
  throw new InvalidArgumentError('It must be an event type, such as SessionScored.')
}

/** Throws if events of this type are on another topic, because the command would print none. */
export function requireTypeOnTopic({ topic, type }: { topic?: string; type?: string }): void {
  const [, topicOfType] = Object.entries(eventTopics).find(([name]) => name === type) ?? []
  if (topicOfType && topicOfType !== topic)
    throw new Error(`--topic must be ${topicOfType} for ${type}, got "${topic}"`)
}

/** Option whose value may contain a secret, so errors don't repeat it. */
interface SecretOption {
  command: Command
  flag: string
}

export function httpUrl(option: SecretOption): (text: string) => string {
  return (text) => {
    const url = /^https?:\/\/\S+$/i.test(text) ? URL.parse(text) : null
    if (!url) return rejectOption(option, 'It must start with http:// or https://.')
    // fetch rejects URLs with credentials.
    if (url.username || url.password)
      return rejectOption(option, 'It must not contain a user name or password.')
    return url.href
  }
}

export function baseUrl(option: SecretOption): (text: string) => string {
  const parse = httpUrl(option)
  return (text) => {
    const href = parse(text)
    return /[?#]/.test(href)
      ? rejectOption(option, 'It must not contain a query or fragment.')
      : href
  }
}

export function signingSecrets(
  option: SecretOption,
): (text: string, previous?: string[]) => string[] {
  return (text, previous = []) => {
    if (isSigningSecret(text)) return [...previous, text]
    return rejectOption(option, 'It must be a signing secret: whsec_ and 44 characters of base64.')
  }
}

// Unlike an InvalidArgumentError, prints no value, because the value may contain a secret.
function rejectOption({ command, flag }: SecretOption, problem: string): never {
  return command.error(`error: option '${flag}' argument is invalid. ${problem}`)
}

/** Returns a parser of numbers up to `max` that match the pattern. Its error message is `problem`. */
export function numericArgument(pattern: RegExp, problem: string, max = Number.POSITIVE_INFINITY) {
  return (text: string): number => {
    if (pattern.test(text) && Number(text) <= max) return Number(text)
    throw new InvalidArgumentError(problem)
  }
}

const rateUnits = numericArgument(
  /^\d{1,15}$/,
  'It must be a whole number of units per 60 seconds, or "default".',
)
export const port = numericArgument(/^\d{1,5}$/, 'It must be a port from 0 to 65535.', 65_535)
export const wholeNumber = numericArgument(/^\d{1,15}$/, 'It must be a whole number.')
/** Parses the maximum number of list entries to print. */
export const listLimit = numericArgument(
  /^[1-9]\d{0,4}$/,
  'It must be a whole number from 1 to 99999.',
)

const timeSchema = z.union([z.iso.datetime({ offset: true }), z.iso.date()])

/** Parses an RFC 3339 time with a time zone, or a date (start of the UTC day), to epoch milliseconds. */
export function instant(text: string): number {
  if (timeSchema.safeParse(text).success) return Date.parse(text)
  throw new InvalidArgumentError(
    'It must be a date, or a time with a time zone: 2026-11-23, 2026-11-23T12:00:00Z.',
  )
}

const unitsMs: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Parses a time, a date or an age such as `90m`, `24h` or `7d` to epoch milliseconds. */
export function since(text: string): number {
  const [, count, unit = ''] = /^(\d{1,4})([mhd])$/.exec(text) ?? []
  if (count !== undefined) return Date.now() - Number(count) * (unitsMs[unit] ?? 0)
  if (timeSchema.safeParse(text).success) return instant(text)
  throw new InvalidArgumentError(
    'It must be an age, a date, or a time with a time zone: 7d, 24h, 90m, 2026-11-23, 2026-11-23T12:00:00Z.',
  )
}
