/**
 * Reads JSON from a client that is not trusted to be well-formed. A value of the wrong type or size becomes "not
 * observed", and the rest is kept. Members that are not named are dropped. It costs a hostile value no more than an
 * honest one: sizes are looked at before contents, and nothing is thrown.
 */
export interface Lenient<T> {
  parse(value: unknown): T
  /** The type in words, for the docs; by member, where it is an object. */
  form: Form
}

export type Form = string | { [member: string]: Form }

const inWords = (form: Form): string =>
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
  one: Lenient<A | null>,
  other: Lenient<B | null>,
): Lenient<A | B | null> {
  const form = `${inWords(one.form)} or ${inWords(other.form)}`
  return { form, parse: (value) => one.parse(value) ?? other.parse(value) }
}

/** A list of at most `max` items; empty where there are more or one cannot be read. */
export function listUpTo<T>(item: Lenient<T | null>, max: number): Lenient<T[]> {
  return {
    form: `up to ${max}: ${inWords(item.form)}`,
    parse(value) {
      if (!Array.isArray(value) || value.length > max) return []
      const items = value.map((one) => item.parse(one))
      return items.some((one) => one === null) ? [] : items.filter((one) => one !== null)
    },
  }
}

/** The same, but null where it is no such list. */
export function listOrNull<T>(item: Lenient<T | null>, max: number): Lenient<T[] | null> {
  const list = listUpTo(item, max)
  return {
    form: list.form,
    parse(value) {
      const read = list.parse(value)
      return Array.isArray(value) && value.length === read.length ? read : null
    },
  }
}

/** Counts by short names, at most `max`; empty where there are more or one cannot be read. */
export function counts(max: number): Lenient<Record<string, number>> {
  return {
    form: `up to ${max} counts by name`,
    parse(value) {
      const entries = isObject(value) ? Object.entries(value) : []
      if (entries.length > max) return {}
      const read: Record<string, number> = {}
      for (const [name, one] of entries) {
        if (!/^[a-z][\w-]{0,39}$/i.test(name) || !isCount(one)) return {}
        read[name] = one
      }
      return read
    },
  }
}

/** An object with these members; its absence or wrong type reads as all of them absent. */
export function group<S extends Record<string, Lenient<unknown>>>(
  members: S,
): Lenient<{ [K in keyof S]: Read<S[K]> }> {
  const entries = Object.entries(members)
  return {
    form: Object.fromEntries(entries.map(([name, { form }]) => [name, form])),
    parse(value) {
      const from = isObject(value) ? value : {}
      const read: Record<string, unknown> = {}
      for (const [name, member] of entries) read[name] = member.parse(from[name])
      // The loop gave it every member of S, each by its own reader.
      return read as { [K in keyof S]: Read<S[K]> }
    },
  }
}

export function optional<T>(inner: Lenient<T>): Lenient<T | null> {
  return { form: inner.form, parse: (value) => (isObject(value) ? inner.parse(value) : null) }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// Of 32 bits.
const isCount = (value: unknown): value is number =>
  typeof value === 'number' && (value | 0) === value && value >= 0
