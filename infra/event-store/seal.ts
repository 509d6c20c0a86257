import type { KeyObject } from 'node:crypto'
import avro from 'avsc'
import { personalFields, readableMembers } from '../../schemas/personal.ts'
import { headerBytes, openGcm, sealGcm } from '../crypto/sealing.ts'
import type { Random } from '../ids.ts'
import type { DataKeys } from './data-keys.ts'
import { encodeBehind, encodeUnder, readablePart } from './wire-format.ts'

export type EventFields = Record<string, unknown>

export interface Sealing {
  keys: DataKeys
  random: Random
}

interface EventSchema {
  name: string
  // Names event and version, because what was encrypted under one is opened under no other.
  key: string
  type: avro.Type
  // The same, where what is in every opened event is not null.
  opened: avro.Type
}

interface Binding {
  dataKey: KeyObject
  eventId: string
}

export type EventSealer = NonNullable<ReturnType<typeof createEventSealer>>

/** Returns undefined for an event, or a version of it, that says nothing about a person under encryption. */
export function createEventSealer({ name, key, type, opened }: EventSchema) {
  if (!isRecord(type) || !isRecord(opened) || !isPersonal(name)) return undefined
  const names: readonly string[] = personalFields[name]
  const fields = type.fields.filter((field) => names.includes(field.name))
  const personalType = recordOf(fields)
  const always = opened.fields.filter(
    (field) => names.includes(field.name) && blankOf(field.type) !== null,
  )

  // Who can write to the log and has no key can neither put it into another event, nor change what stands beside it.
  const contextOf = (value: Buffer, sealedBytes: number, eventId: string): Buffer =>
    Buffer.concat([Buffer.from(`${key}\0${eventId}\0`), readablePart(value, sealedBytes)])

  return {
    /** The fields with the personal ones null. */
    withoutPersonal: (data: object): EventFields => withoutPersonal(name, data),
    /** Encodes the event under the schema id with its personal fields encrypted, and those alone. */
    seal(
      data: object,
      { id, dataKey, eventId, random }: Binding & { id: number; random: Random },
    ): Buffer {
      // 1. Encode the event with room for what is encrypted, which is the last field.
      const personal = encodeBehind(0, personalType, data)
      const length = personal.length + headerBytes
      const readable = withoutPersonal(name, data)
      const value = encodeUnder(id, type, { ...readable, sealed: Buffer.alloc(length) })
      // 2. Encrypt into the room, bound to all the rest.
      const context = contextOf(value, length, eventId)
      const sealed = sealGcm(personal, { key: dataKey, context, iv: random(12), prefix: nothing })
      sealed.copy(value, value.length - length)
      return value
    },
    /** The personal fields, encoded. undefined where another key encrypted them, or the event was changed. */
    open: (value: Buffer, sealed: Buffer, { dataKey, eventId }: Binding): Buffer | undefined =>
      openGcm(sealed, { key: dataKey, context: contextOf(value, sealed.length, eventId) }),
    /** Puts the personal fields back. */
    restore(data: EventFields, personal: Buffer): void {
      Object.assign(data, personalType.fromBuffer(personal))
    },
    /** True where fields that every opened event has are null. */
    isUnreadable: (data: EventFields): boolean => always.some((field) => data[field.name] === null),
    /** Puts values that say nothing where an opened event has no null, so that it has the same type. */
    close: (data: EventFields): void => fillBlanks(data, opened),
  }
}

const nothing = Buffer.alloc(0)

type PersonalEvent = keyof typeof personalFields

export const isPersonal = (name: string): name is PersonalEvent => name in personalFields

/** What an event says where its personal fields are encrypted or gone: they are null. */
export function withoutPersonal(name: PersonalEvent, data: object): Record<string, unknown> {
  const next: Record<string, unknown> = { ...data }
  for (const field of personalFields[name])
    next[field] = readableOf(next[field], readableMembers[name]?.[field])
  return next
}

function readableOf(value: unknown, members: readonly string[] | undefined): unknown {
  if (!members || typeof value !== 'object' || value === null) return null
  return Object.fromEntries(Object.entries(value).filter(([member]) => members.includes(member)))
}

// Its fields have the types that they have in the event, so that an encrypted value is as long as a readable one.
function recordOf(fields: avro.types.Field[]): avro.Type {
  const members = fields.map(({ name, type }) => ({ name, type }))
  return avro.Type.forSchema({
    type: 'record',
    name: 'Personal',
    fields: members,
  } as unknown as avro.Schema)
}

const isRecord = (type: avro.Type) => type instanceof avro.types.RecordType

function recordIn(type: avro.Type): avro.types.RecordType | undefined {
  return type instanceof avro.types.UnwrappedUnionType
    ? type.types.find(isRecord)
    : [type].find(isRecord)
}

function fillBlanks(data: EventFields, type: avro.types.RecordType): void {
  for (const { name, type: member } of type.fields) {
    const value = data[name]
    const inner = recordIn(member)
    if (value === null) data[name] = blankOf(member)
    else if (inner && typeof value === 'object') fillBlanks(Object(value), inner)
  }
}

// The shortest value of the type that says nothing.
function blankOf(type: avro.Type): unknown {
  if (type instanceof avro.types.RecordType)
    return Object.fromEntries(type.fields.map((field) => [field.name, blankOf(field.type)]))
  // All unions have null first.
  if (type instanceof avro.types.UnwrappedUnionType) return null
  if (type instanceof avro.types.EnumType) return type.symbols[0]
  if (type instanceof avro.types.ArrayType) return []
  if (type instanceof avro.types.MapType) return {}
  if (type instanceof avro.types.BytesType) return nothing
  if (type instanceof avro.types.StringType) return ''
  return type instanceof avro.types.BooleanType ? false : 0
}
