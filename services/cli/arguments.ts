import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { isId } from '../../infra/ids.ts'
import { isSigningSecret } from '../../infra/wire/webhooks/signature.ts'
import { eventTopics } from '../../schemas/events.ts'

export const jsonFlag = ['--json', 'print one JSON document', false] as const

export function wordOf<Word extends string>(...words: Word[]): (text: string) => Word {
  return (text) => {
    const word = words.find((known) => known === text)
    if (word) return word
    throw new InvalidArgumentError(`It must be one of ${words.join(', ')}.`)
  }
}

export function commaList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)
}

export function limit(text: string): number | 'default' {
  return text === 'default' ? text : units(text)
}

const kinds = { evt: 'an event', we: 'an endpoint', org: 'an organization' }

export function idOf(prefix: keyof typeof kinds): (text: string) => string {
  return (text) => {
    if (isId(prefix, text)) return text
    throw new InvalidArgumentError(`It must be the id of ${kinds[prefix]} (${prefix}_...).`)
  }
}

const isEventType = (text: string) => Object.hasOwn(eventTopics, text)

export function eventType(text: string): string {
  if (isEventType(text)) return text
  throw new InvalidArgumentError('It must be the name of an event, such as SessionScored.')
}

/** Throws where the events of the type are on another topic, so that nothing would be found. */
export function requireTypeOn({ topic, type }: { topic?: string; type?: string }): void {
  const [, of] = Object.entries(eventTopics).find(([name]) => name === type) ?? []
  if (of && of !== topic) throw new Error(`--topic must be ${of} for ${type}, got "${topic}"`)
}

/** An option whose value may be a secret, and is therefore not repeated when it is refused. */
interface SecretOption {
  command: Command
  flag: string
}

export function httpUrl(option: SecretOption): (text: string) => string {
  return (text) => {
    const url = /^https?:\/\/\S+$/i.test(text) ? URL.parse(text) : null
    if (!url) return refuse(option, 'It must be a URL that begins with http:// or https://.')
    // fetch refuses such a URL.
    if (url.username || url.password)
      return refuse(option, 'It must not have a user name or a password.')
    return url.href
  }
}

export function baseUrl(option: SecretOption): (text: string) => string {
  const parse = httpUrl(option)
  return (text) => {
    const href = parse(text)
    return /[?#]/.test(href) ? refuse(option, 'It must not have a query or a fragment.') : href
  }
}

export function signingSecrets(
  option: SecretOption,
): (text: string, before?: string[]) => string[] {
  return (text, before = []) => {
    if (isSigningSecret(text)) return [...before, text]
    return refuse(option, 'It must be a whole signing secret, whsec_ and 44 characters of base64.')
  }
}

// Commander repeats the value in the message of an InvalidArgumentError; of these options it may be a secret.
function refuse({ command, flag }: SecretOption, problem: string): never {
  return command.error(`error: option '${flag}' argument is invalid. ${problem}`)
}

/** A parser of a number whose digits fit the pattern; `problem` is the message for any other text. */
export function numericArgument(pattern: RegExp, problem: string, most = Number.POSITIVE_INFINITY) {
  return (text: string): number => {
    if (pattern.test(text) && Number(text) <= most) return Number(text)
    throw new InvalidArgumentError(problem)
  }
}

const units = numericArgument(
  /^\d{1,15}$/,
  'It must be a whole number of units in 60 seconds, or "default".',
)
export const port = numericArgument(/^\d{1,5}$/, 'It must be a port, 0 to 65535.', 65_535)
export const wholeNumber = numericArgument(/^\d{1,15}$/, 'It must be a whole number.')
/** How many entries of a list are printed. */
export const atMost = numericArgument(
  /^[1-9]\d{0,4}$/,
  'It must be a whole number from 1 to 99999.',
)

const momentForm = z.union([z.iso.datetime({ offset: true }), z.iso.date()])

/** Epoch milliseconds of an RFC 3339 time with its zone, or of the begin of a day (UTC). */
export function instant(text: string): number {
  if (momentForm.safeParse(text).success) return Date.parse(text)
  throw new InvalidArgumentError(
    'It must be a time with a zone or a day: 2026-11-23T12:00:00Z, 2026-11-23.',
  )
}

const unitsMs: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Epoch milliseconds of a time, or of so many minutes, hours or days ago: `90m`, `24h`, `7d`. */
export function since(text: string): number {
  const [, count, unit = ''] = /^(\d{1,4})([mhd])$/.exec(text) ?? []
  if (count !== undefined) return Date.now() - Number(count) * (unitsMs[unit] ?? 0)
  if (momentForm.safeParse(text).success) return instant(text)
  throw new InvalidArgumentError(
    'It must be a time with a zone, a day or how long ago: 2026-11-23T12:00:00Z, 2026-11-23, 7d, 24h, 90m.',
  )
}
