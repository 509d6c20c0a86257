import { createDecoder } from './decode.ts'
import { createEncoder } from './encode.ts'
import { committedSchemas, type EventSchemas, type SchemaIds, schemaIdOf } from './event-schemas.ts'
import type { Sealing } from './seal.ts'

export interface CodecOptions {
  /** Default: the committed schemas. */
  schemas?: EventSchemas
  /** Absent = events are neither encrypted nor decrypted. */
  sealing?: Sealing | undefined
}

/**
 * Creates a codec for events in the Confluent wire format: 0x00, schema id as 4 bytes big-endian, Avro body
 * (docs.confluent.io, "Wire format"). Decodes every version of an event to the newest one. `registered` are the schema
 * ids from a registry; default: the committed ids. Personal fields are encrypted under the session's data key, which
 * must be in memory.
 */
export function createCodec(registered?: SchemaIds, options: CodecOptions = {}) {
  const { schemas = committedSchemas, sealing } = options
  const ids = registered ?? schemas.ids
  const parts = { schemas, ids, sealing }
  return {
    ...createEncoder(parts),
    ...createDecoder(parts),
    /** Returns the id of the schema `topic/Name.v1` as records carry it. Throws if there is no such schema. */
    schemaId: (key: string): number => schemaIdOf(ids, key),
  }
}

export type EventCodec = ReturnType<typeof createCodec>
