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

/** The type of a field, with what Avro says beside it. */
export interface Member {
  type: AvroSource
  default?: null
  doc?: string
}
type Field = { name: string } & Member

export const string: Member = { type: 'string' }
export const boolean: Member = { type: 'boolean' }
export const int: Member = { type: 'int' }
export const double: Member = { type: 'double' }
export const time: Member = { type: { type: 'long', logicalType: 'timestamp-millis' } }
export const strings = listOf(string)

export const text = orNull(string)
export const flag = orNull(boolean)
export const count = orNull(int)
export const amount = orNull(double)
export const texts = orNull(strings)
export const hash: Member = { type: ['null', 'string', 'double'], default: null }

export function orNull({ type }: Member): Member {
  return { type: ['null', type], default: null }
}

export function listOf({ type }: Member): Member {
  return { type: { type: 'array', items: type } }
}

export function mapOf({ type }: Member): Member {
  return { type: { type: 'map', values: type } }
}

/** A reader that does not know a symbol reads `fallback`. */
export function oneOf(name: string, symbols: string[], fallback: string): Member {
  return { type: { type: 'enum', name, symbols, default: fallback } }
}

export function record(
  name: string,
  members: Record<string, Member>,
  about: { namespace?: string; doc?: string } = {},
): Member {
  const fields = Object.entries(members).map(([field, member]) => ({ name: field, ...member }))
  return { type: { type: 'record', name, ...about, fields } }
}

export function documented(member: Member, doc: string): Member {
  return { ...member, doc }
}

/** The schema's text: a named type stands where it is first used, and by its name from there on. */
export function avscText({ type }: Member): string {
  const known = new Set<string>()
  const once = (_: string, value: unknown) => {
    if (!isNamed(value)) return value
    if (known.has(value.name)) return value.name
    known.add(value.name)
    return value
  }
  return JSON.stringify(type, once, 2)
}

function isNamed(value: unknown): value is NamedType {
  return (
    typeof value === 'object' &&
    value !== null &&
    'type' in value &&
    (value.type === 'record' || value.type === 'enum')
  )
}
