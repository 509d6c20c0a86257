import type { KeyObject } from 'node:crypto'
import avro from 'avsc'
import { boundToKind, keptMembers, personalFields, readableBefore } from '../../schemas/personal.ts'
import { headerBytes, openGcm, sealGcm } from '../crypto/sealing.ts'
import type { Random } from '../ids.ts'
import { encodeBehind, readablePart } from './wire-format.ts'

type Fields = Record<string, unknown>

interface EventSchema {
  name: string
  // Of event and version. What was encrypted under one is opened under the same alone.
  key: string
  type: avro.Type
}

interface Binding {
  dataKey: KeyObject
  eventId: string
}

export interface EventSealer {
  // The personal fields alone, encoded.
  personalOf(data: object): Buffer
  // The fields with the personal ones blank.
  blank(data: object): Fields
  // The same, with room for the personal ones encrypted.
  withRoom(data: object, personal: Buffer): Fields
  // Encrypts the personal fields into the room that the encoded event has for them.
  fill(value: Buffer, personal: Buffer, options: Binding & { random: Random }): void
  // The personal fields, encoded. undefined where another key encrypted them, or the event was changed.
  open(value: Buffer, sealed: Buffer, binding: Binding): Buffer | undefined
  // Puts the personal fields back.
  restore(data: Fields, personal: Buffer): void
}

// undefined for an event, or a version of it, that says nothing about a person under encryption.
export function createEventSealer({ name, key, type }: EventSchema): EventSealer | undefined {
  const readable: readonly string[] = readableBefore[key] ?? []
  const personalNames: readonly string[] = isPersonal(name) ? personalFields[name] : []
  const names = personalNames.filter((field) => !readable.includes(field))
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

  // Who can write to the log and has no key can neither put it into another event, nor change what stands beside it.
  const contextOf = (value: Buffer, sealedBytes: number, eventId: string): Buffer =>
    boundToKind.has(key)
      ? Buffer.from(key)
      : Buffer.concat([Buffer.from(`${key}\0${eventId}\0`), readablePart(value, sealedBytes)])

  return {
    blank,
    personalOf: (data) => encodeBehind(0, personal, data),
    withRoom: (data, plaintext) => ({
      ...blank(data),
      sealed: Buffer.alloc(plaintext.length + headerBytes),
    }),
    fill(value, plaintext, { dataKey, eventId, random }) {
      const length = plaintext.length + headerBytes
      const context = contextOf(value, length, eventId)
      const sealed = sealGcm(plaintext, { key: dataKey, context, iv: random(12), prefix: nothing })
      sealed.copy(value, value.length - length)
    },
    open: (value, sealed, { dataKey, eventId }) =>
      openGcm(sealed, { key: dataKey, context: contextOf(value, sealed.length, eventId) }),
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
