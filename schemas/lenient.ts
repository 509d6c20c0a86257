/**
 * Parser for untrusted JSON that never throws. Replaces a value of the wrong type or size with null, an empty list or
 * 0, keeps the rest and drops unknown members. Sizes are checked first, so that a hostile value costs no more than
 * another.
 */
export interface LenientParser<T> {
  parse(value: unknown): T
  /** Type as shown in the docs; for an object, by member. */
  docType: DocType
}

export type DocType = string | { [member: string]: DocType }

const docTypeText = (docType: DocType): string =>
  typeof docType === 'string' ? docType : `{ ${Object.keys(docType).join(', ')} }`

export type ParsedBy<L> = L extends LenientParser<infer T> ? T : never

export function stringUpTo(max: number): LenientParser<string | null> {
  return {
    docType: `text of ${max}`,
    parse: (value) =>
      typeof value === 'string' && value.length <= max ? value.replaceAll('\0', '') : null,
  }
}

export const bool: LenientParser<boolean | null> = {
  docType: 'boolean',
  parse: (value) => (typeof value === 'boolean' ? value : null),
}

export const number: LenientParser<number | null> = {
  docType: 'number',
  parse: (value) => (typeof value === 'number' && Number.isFinite(value) ? value : null),
}

export const size: LenientParser<number | null> = {
  docType: 'size',
  parse: (value) =>
    typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null,
}

export const count: LenientParser<number | null> = {
  docType: 'count',
  parse: (value) => (isCount(value) ? value : null),
}

export const countOrZero: LenientParser<number> = {
  docType: 'count',
  parse: (value) => (isCount(value) ? value : 0),
}

export function either<A, B>(
  first: LenientParser<A | null>,
  second: LenientParser<B | null>,
): LenientParser<A | B | null> {
  const docType = `${docTypeText(first.docType)} or ${docTypeText(second.docType)}`
  return { docType, parse: (value) => first.parse(value) ?? second.parse(value) }
}

/** Parses a list of at most `max` items. Returns an empty list if it is longer or an item is invalid. */
export function listUpTo<T>(item: LenientParser<T | null>, max: number): LenientParser<T[]> {
  return {
    docType: `up to ${max}: ${docTypeText(item.docType)}`,
    parse(value) {
      if (!Array.isArray(value) || value.length > max) return []
      const items = value.map((element) => item.parse(element)).filter((parsed) => parsed !== null)
      return items.length === value.length ? items : []
    },
  }
}

/** Parses like `listUpTo`, but returns null for an invalid list. */
export function listOrNull<T>(
  item: LenientParser<T | null>,
  max: number,
): LenientParser<T[] | null> {
  const list = listUpTo(item, max)
  return {
    docType: list.docType,
    parse(value) {
      const items = list.parse(value)
      return Array.isArray(value) && value.length === items.length ? items : null
    },
  }
}

/** Parses counts by name. Returns an empty object if there are more than `max`, or a name or count is invalid. */
export function counts(max: number): LenientParser<Record<string, number>> {
  return {
    docType: `up to ${max} counts by name`,
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

/** Parses an object with these members. Any other value is parsed like `{}`. */
export function group<S extends Record<string, LenientParser<unknown>>>(
  members: S,
): LenientParser<{ [K in keyof S]: ParsedBy<S[K]> }> {
  const entries = Object.entries(members)
  return {
    docType: Object.fromEntries(entries.map(([name, { docType }]) => [name, docType])),
    parse(value) {
      const source = isObject(value) ? value : {}
      const parsed: Record<string, unknown> = {}
      for (const [name, member] of entries) parsed[name] = member.parse(source[name])
      // The cast is safe: each member of S was parsed by its own parser.
      return parsed as { [K in keyof S]: ParsedBy<S[K]> }
    },
  }
}

/** Parses an object. Returns null for any other value. */
export function optional<T>(inner: LenientParser<T>): LenientParser<T | null> {
  return { docType: inner.docType, parse: (value) => (isObject(value) ? inner.parse(value) : null) }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// Returns true for a non-negative 32-bit integer.
const isCount = (value: unknown): value is number =>
  typeof value === 'number' && (value | 0) === value && value >= 0
