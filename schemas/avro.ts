// Builders of Avro schemas, for those that are too long to write by hand.

interface NamedType {
  type: 'record' | 'enum'
  name: string
  namespace?: string
  doc?: string
  fields?: Field[]
  symbols?: string[]
  default?: string
}
type AvroSource =
  | string
  | AvroSource[]
  | NamedType
  | { type: 'array'; items: AvroSource }
  | { type: 'map'; values: AvroSource }
  | { type: 'long'; logicalType: 'timestamp-millis' }

export interface AvroMember {
  type: AvroSource
  default?: null
  null_if?: 'sealed'
  doc?: string
}
type Field = { name: string } & AvroMember

export const string: AvroMember = { type: 'string' }
export const boolean: AvroMember = { type: 'boolean' }
export const int: AvroMember = { type: 'int' }
export const double: AvroMember = { type: 'double' }
export const bytes: AvroMember = { type: 'bytes' }
export const timestampMillis: AvroMember = { type: { type: 'long', logicalType: 'timestamp-millis' } }
export const strings = listOf(string)

export const textOrNull = orNull(string)
export const flagOrNull = orNull(boolean)
export const countOrNull = orNull(int)
export const amountOrNull = orNull(double)
export const textsOrNull = orNull(strings)
export const hash: AvroMember = { type: ['null', 'string', 'double'], default: null }

export function orNull({ type }: AvroMember): AvroMember {
  return { type: ['null', type], default: null }
}

/** Personal, and in every event: null only where it is encrypted. The generated type leaves the null out. */
export function nullIfSealed(member: AvroMember): AvroMember {
  return { ...orNull(member), null_if: 'sealed' }
}

export function listOf({ type }: AvroMember): AvroMember {
  return { type: { type: 'array', items: type } }
}

export function mapOf({ type }: AvroMember): AvroMember {
  return { type: { type: 'map', values: type } }
}

/** A reader that does not know a symbol reads `fallback`. */
export function oneOf(name: string, symbols: string[], fallback: string): AvroMember {
  return { type: { type: 'enum', name, symbols, default: fallback } }
}

export function record(
  name: string,
  members: Record<string, AvroMember>,
  about: { namespace?: string; doc?: string } = {},
): AvroMember {
  const fields = Object.entries(members).map(([field, member]) => ({ name: field, ...member }))
  return { type: { type: 'record', name, ...about, fields } }
}

export function documented(member: AvroMember, doc: string): AvroMember {
  return { ...member, doc }
}

/** The schema's text: a named type stands where it is first used, and by its name from there on. */
export function avscText({ type }: AvroMember): string {
  const known = new Set<string>()
  const once = (_: string, value: unknown) => {
    if (!isNamed(value)) return value
    if (known.has(value.name)) return value.name
    known.add(value.name)
    return value
  }
  return `${jsonText(JSON.parse(JSON.stringify(type, once)))}\n`
}

const widestLine = 110

/** JSON as the formatter of this repository writes it, and members that fit on one line on one line. */
export function jsonText(value: unknown, indent = ''): string {
  const short = oneLine(value)
  if (indent.length + short.length < widestLine || typeof value !== 'object' || value === null) return short
  const inner = `${indent}  `
  const [open, close, parts] = Array.isArray(value)
    ? ['[', ']', value.map((one) => jsonText(one, inner))]
    : ['{', '}', Object.entries(value).map(([name, one]) => `"${name}": ${jsonText(one, inner)}`)]
  return `${open}\n${parts.map((part) => inner + part).join(',\n')}\n${indent}${close}`
}

function oneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([name, one]) => `"${name}": ${oneLine(one)}`)
  return `{ ${members.join(', ')} }`
}

function isNamed(value: unknown): value is NamedType {
  return (
    typeof value === 'object' &&
    value !== null &&
    'type' in value &&
    (value.type === 'record' || value.type === 'enum')
  )
}
