import { createDecoder } from './decode.ts'
import { createEncoder } from './encode.ts'
import { committedSchemas, type EventSchemas, idIn, type SchemaIds } from './event-schemas.ts'
import type { Sealing } from './seal.ts'

export interface CodecOptions {
  /** Default: those that are committed. */
  schemas?: EventSchemas
  /** Without it nothing is encrypted, and what is encrypted stays unreadable. */
  sealing?: Sealing | undefined
}

/**
 * Encodes and decodes events in the Confluent wire format: 0x00, schema id as 4 bytes big-endian, Avro body
 * (docs.confluent.io, "Wire format"). Values of any version resolve to the newest one. Without ids of a registry it
 * uses the committed ones.
 * What it says about a person is encrypted under the data key of its session, which has to be in memory.
 */
export function createCodec(registered?: SchemaIds, options: CodecOptions = {}) {
  const { schemas = committedSchemas, sealing } = options
  const ids = registered ?? schemas.ids
  const parts = { schemas, ids, sealing }
  return {
    ...createEncoder(parts),
    ...createDecoder(parts),
    /** The id that records carry of the schema `topic/Name.v1`. Throws where there is no such schema. */
    schemaId: (key: string): number => idIn(ids, key),
  }
}

export type EventCodec = ReturnType<typeof createCodec>
