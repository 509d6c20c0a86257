import type { KeyObject } from 'node:crypto'
import avro from 'avsc'
import { keptMembers, personalFields } from '../../schemas/personal.ts'
import { openGcm, sealGcm } from '../crypto/sealing.ts'
import type { Random } from '../ids.ts'
import { encodeBehind } from './wire-format.ts'

type Fields = Record<string, unknown>

interface EventSchema {
  name: string
  // Of event and version. What was encrypted under one is opened under the same alone.
  key: string
  type: avro.Type
}

export interface EventSealer {
  // The personal fields alone, encoded.
  personalOf(data: object): Buffer
  // The fields with the personal ones blank, and encrypted beside them.
  seal(data: object, personal: Buffer, options: { dataKey: KeyObject; random: Random }): Fields
  // The fields with the personal ones blank.
  blank(data: object): Fields
  // The personal fields, encoded. undefined where another key encrypted them.
  open(data: Fields, dataKey: KeyObject): Buffer | undefined
  // Puts the personal fields back.
  restore(data: Fields, personal: Buffer): void
}

// undefined for an event, or a version of it, that says nothing about a person under encryption.
export function createEventSealer({ name, key, type }: EventSchema): EventSealer | undefined {
  const context = Buffer.from(key)
  const names: readonly string[] = isPersonal(name) ? personalFields[name] : []
  if (!(type instanceof avro.types.RecordType) || !type.field('sealed')) return undefined
  const fields = type.fields.filter((field) => names.includes(field.name))
  const personal = recordOf(fields)
  const kept = Object.entries(isPersonal(name) ? (keptMembers[name] ?? {}) : {}).map(
    ([field, members]) => [field, keeper(members, type.field(field).type)] as const,
  )

  const keptNames = kept.map(([field]) => field)
  const blanks = fields
    .filter((field) => !keptNames.includes(field.name))
    .map((field) => [field.name, blankOf(field.type)] as const)

  function blank(data: object): Fields {
    const next: Fields = { ...data }
    for (const [field, keep] of kept) next[field] = keep(next[field])
    for (const [field, value] of blanks) next[field] = value
    return next
  }

  return {
    blank,
    personalOf: (data) => encodeBehind(0, personal, data),
    seal: (data, plaintext, { dataKey, random }) => ({
      ...blank(data),
      sealed: sealGcm(plaintext, { key: dataKey, context, iv: random(12), prefix: nothing }),
    }),
    open: ({ sealed }, dataKey) =>
      Buffer.isBuffer(sealed) ? openGcm(sealed, { key: dataKey, context }) : undefined,
    restore(data, plaintext) {
      Object.assign(data, personal.fromBuffer(plaintext))
    },
  }
}

const nothing = Buffer.alloc(0)

function isPersonal(name: string): name is keyof typeof personalFields {
  return name in personalFields
}

// Of the same types as in the event, so that an encrypted value is as long as a readable one.
function recordOf(fields: avro.types.Field[]): avro.Type {
  const members = fields.map(({ name, type }) => ({ name, type }))
  return avro.Type.forSchema({ type: 'record', name: 'Personal', fields: members } as unknown as avro.Schema)
}

// Leaves the members of a record that stay readable, and nothing else of it.
function keeper(members: readonly string[], type: avro.Type): (value: unknown) => unknown {
  const record = type instanceof avro.types.UnwrappedUnionType ? type.types.find(isRecord) : type
  const blank = Object(record && blankOf(record))
  return (value) => {
    if (typeof value !== 'object' || value === null) return null
    const given: Fields = { ...value }
    const next: Fields = { ...blank }
    for (const member of members) next[member] = given[member]
    return next
  }
}

const isRecord = (type: avro.Type) => type instanceof avro.types.RecordType

// The shortest value of the type that says nothing.
function blankOf(type: avro.Type): unknown {
  if (type instanceof avro.types.RecordType)
    return Object.fromEntries(type.fields.map((field) => [field.name, blankOf(field.type)]))
  if (type instanceof avro.types.UnwrappedUnionType) {
    const [first] = type.types
    return type.types.some(({ typeName }) => typeName === 'null') || !first ? null : blankOf(first)
  }
  if (type instanceof avro.types.EnumType) return type.symbols[0]
  if (type instanceof avro.types.ArrayType) return []
  if (type instanceof avro.types.MapType) return {}
  if (type instanceof avro.types.BytesType) return nothing
  if (type instanceof avro.types.StringType) return ''
  return type instanceof avro.types.BooleanType ? false : 0
}
