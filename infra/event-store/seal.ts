import type { KeyObject } from 'node:crypto'
import avro from 'avsc'
import { personalFields, readableMembers } from '../../schemas/personal.ts'
import { headerBytes, openGcm, sealGcm } from '../crypto/sealing.ts'
import type { Random } from '../ids.ts'
import type { DataKeys } from './data-keys.ts'
import { encodeAvro, encodeWithSchemaId, readablePart } from './wire-format.ts'

export type EventFields = Record<string, unknown>

export interface Sealing {
  keys: DataKeys
  random: Random
}

interface EventSchema {
  name: string
  // Event name and version. Authenticated, so a value can't be decrypted as another event or version.
  key: string
  type: avro.Type
  // The same type with non-null personal fields, as in a decrypted event.
  decryptedType: avro.Type
}

interface SealKey {
  dataKey: KeyObject
  eventId: string
}

export type EventSealer = NonNullable<ReturnType<typeof createEventSealer>>

/**
 * Creates an encrypter for an event's personal fields. Returns undefined for a schema version without any.
 */
export function createEventSealer({ name, key, type, decryptedType }: EventSchema) {
  if (!isRecord(type) || !isRecord(decryptedType) || !hasPersonalFields(name)) return undefined
  const names: readonly string[] = personalFields[name]
  const fields = type.fields.filter((field) => names.includes(field.name))
  const personalType = recordOf(fields)
  const requiredFields = decryptedType.fields.filter(
    (field) => names.includes(field.name) && blankOf(field.type) !== null,
  )

  // Returns the additional authenticated data (AAD): someone who can write to the log but has no key can neither move
  // the ciphertext into another event nor alter the plaintext fields beside it.
  const contextOf = (value: Buffer, sealedBytes: number, eventId: string): Buffer =>
    Buffer.concat([Buffer.from(`${key}\0${eventId}\0`), readablePart(value, sealedBytes)])

  return {
    withoutPersonal: (data: object): EventFields => withoutPersonal(name, data),
    /** Encodes the event with the schema id, its personal fields encrypted and all others readable. */
    seal(
      data: object,
      { id, dataKey, eventId, random }: SealKey & { id: number; random: Random },
    ): Buffer {
      // 1. Encode the event with room for the ciphertext, which is the last field.
      const personal = encodeAvro(0, personalType, data)
      const length = personal.length + headerBytes
      const readable = withoutPersonal(name, data)
      const value = encodeWithSchemaId(id, type, { ...readable, sealed: Buffer.alloc(length) })
      // 2. Encrypt the personal fields into that room, with everything else authenticated.
      const context = contextOf(value, length, eventId)
      const sealed = sealGcm(personal, { key: dataKey, context, iv: random(12), prefix: empty })
      sealed.copy(value, value.length - length)
      return value
    },
    /** Decrypts the personal fields, still encoded. Returns undefined for another key or an altered event. */
    open: (value: Buffer, sealed: Buffer, { dataKey, eventId }: SealKey): Buffer | undefined =>
      openGcm(sealed, { key: dataKey, context: contextOf(value, sealed.length, eventId) }),
    /** Decodes the personal fields into `data`. */
    restore(data: EventFields, personal: Buffer): void {
      Object.assign(data, personalType.fromBuffer(personal))
    },
    /** Returns true if a personal field that can't be null in a decrypted event is null. */
    isUnreadable: (data: EventFields): boolean =>
      requiredFields.some((field) => data[field.name] === null),
    /** Replaces nulls of personal fields with blank values where a decrypted event can't have null. */
    fillBlanks: (data: EventFields): void => fillBlanks(data, decryptedType),
  }
}

const empty = Buffer.alloc(0)

type PersonalEvent = keyof typeof personalFields

export const hasPersonalFields = (name: string): name is PersonalEvent => name in personalFields

/** Returns the event's fields with the personal ones null, except for their readable members. */
export function withoutPersonal(name: PersonalEvent, data: object): Record<string, unknown> {
  const fields: Record<string, unknown> = { ...data }
  for (const field of personalFields[name])
    fields[field] = readableOf(fields[field], readableMembers[name]?.[field])
  return fields
}

function readableOf(value: unknown, members: readonly string[] | undefined): unknown {
  if (!members || typeof value !== 'object' || value === null) return null
  return Object.fromEntries(Object.entries(value).filter(([member]) => members.includes(member)))
}

// Returns an Avro record type with only these fields.
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

// Returns an empty value of the type.
function blankOf(type: avro.Type): unknown {
  if (type instanceof avro.types.RecordType)
    return Object.fromEntries(type.fields.map((field) => [field.name, blankOf(field.type)]))
  // Every union includes null.
  if (type instanceof avro.types.UnwrappedUnionType) return null
  if (type instanceof avro.types.EnumType) return type.symbols[0]
  if (type instanceof avro.types.ArrayType) return []
  if (type instanceof avro.types.MapType) return {}
  if (type instanceof avro.types.BytesType) return empty
  if (type instanceof avro.types.StringType) return ''
  return type instanceof avro.types.BooleanType ? false : 0
}
