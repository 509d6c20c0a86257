/**
 * Parser for untrusted JSON. A value of the wrong type or size becomes "not observed" (null, empty or 0), and the rest
 * is kept. Unknown members are dropped. It never throws, and checks sizes before contents, so that a hostile value
 * costs no more than an honest one.
 */
export interface Lenient<T> {
  parse(value: unknown): T
  /** Type in words, for the docs; for an object, by member. */
  form: Form
}

export type Form = string | { [member: string]: Form }

const formText = (form: Form): string =>
  typeof form === 'string' ? form : `{ ${Object.keys(form).join(', ')} }`

export type Read<L> = L extends Lenient<infer T> ? T : never

export function stringUpTo(max: number): Lenient<string | null> {
  return {
    form: `text of ${max}`,
    parse: (value) =>
      typeof value === 'string' && value.length <= max ? value.replaceAll('\0', '') : null,
  }
}

export const bool: Lenient<boolean | null> = {
  form: 'boolean',
  parse: (value) => (typeof value === 'boolean' ? value : null),
}

export const number: Lenient<number | null> = {
  form: 'number',
  parse: (value) => (typeof value === 'number' && Number.isFinite(value) ? value : null),
}

export const size: Lenient<number | null> = {
  form: 'size',
  parse: (value) =>
    typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null,
}

export const count: Lenient<number | null> = {
  form: 'count',
  parse: (value) => (isCount(value) ? value : null),
}

export const countOrZero: Lenient<number> = {
  form: 'count',
  parse: (value) => (isCount(value) ? value : 0),
}

export function either<A, B>(
  first: Lenient<A | null>,
  second: Lenient<B | null>,
): Lenient<A | B | null> {
  const form = `${formText(first.form)} or ${formText(second.form)}`
  return { form, parse: (value) => first.parse(value) ?? second.parse(value) }
}

/** Parses a list of at most `max` items; empty if it is longer or an item is invalid. */
export function listUpTo<T>(item: Lenient<T | null>, max: number): Lenient<T[]> {
  return {
    form: `up to ${max}: ${formText(item.form)}`,
    parse(value) {
      if (!Array.isArray(value) || value.length > max) return []
      const items = value.map((element) => item.parse(element)).filter((parsed) => parsed !== null)
      return items.length === value.length ? items : []
    },
  }
}

/** Parses like `listUpTo`, but returns null for an invalid list. */
export function listOrNull<T>(item: Lenient<T | null>, max: number): Lenient<T[] | null> {
  const list = listUpTo(item, max)
  return {
    form: list.form,
    parse(value) {
      const items = list.parse(value)
      return Array.isArray(value) && value.length === items.length ? items : null
    },
  }
}

/** Parses counts by short names; empty if there are more than `max` or one is invalid. */
export function counts(max: number): Lenient<Record<string, number>> {
  return {
    form: `up to ${max} counts by name`,
    parse(value) {
      const entries = isObject(value) ? Object.entries(value) : []
      if (entries.length > max) return {}
      const parsed: Record<string, number> = {}
      for (const [name, number] of entries) {
        if (!/^[a-z][\w-]{0,39}$/i.test(name) || !isCount(number)) return {}
        parsed[name] = number
      }
      return parsed
    },
  }
}

/** Parses an object with these members. Anything else is parsed like `{}`. */
export function group<S extends Record<string, Lenient<unknown>>>(
  members: S,
): Lenient<{ [K in keyof S]: Read<S[K]> }> {
  const entries = Object.entries(members)
  return {
    form: Object.fromEntries(entries.map(([name, { form }]) => [name, form])),
    parse(value) {
      const source = isObject(value) ? value : {}
      const parsed: Record<string, unknown> = {}
      for (const [name, member] of entries) parsed[name] = member.parse(source[name])
      // The cast is safe: each member of S was parsed by its own parser.
      return parsed as { [K in keyof S]: Read<S[K]> }
    },
  }
}

/** Parses an object, or returns null for anything else. */
export function optional<T>(inner: Lenient<T>): Lenient<T | null> {
  return { form: inner.form, parse: (value) => (isObject(value) ? inner.parse(value) : null) }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// Returns true for a non-negative 32-bit integer.
const isCount = (value: unknown): value is number =>
  typeof value === 'number' && (value | 0) === value && value >= 0
