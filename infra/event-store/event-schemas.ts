import avro from 'avsc'
import { eventTopics } from '../../schemas/events.ts'
import {
  openedSchema,
  readFactsSchemas,
  readSchemaFiles,
  type SchemaFile,
} from '../../schemas/generate.ts'
import committed from '../../schemas/ids.json' with { type: 'json' }
import type { EventName } from './event.ts'
import { createEventSealer, type EventSealer } from './seal.ts'

/** Schema ids by key, such as `organizations/ApiKeyIssued.v1`. */
export type SchemaIds = Record<string, number>

/** A version of an event. */
export interface SchemaVersion {
  name: EventName
  key: string
  /** The id in schemas/ids.json. */
  id: number
  /** Parsed on first use, so a CLI command that needs few schemas doesn't wait for all. */
  type: () => avro.Type
  hasCause: boolean
  sealer: () => EventSealer | undefined
}

/**
 * Versions that this release reads but doesn't write yet. List a new version here in the release that introduces it: a
 * rollback to the previous release, which can't read it, then stays possible. Remove it in the next release.
 */
const readOnly: ReadonlySet<string> = new Set()

export interface EventSchemas {
  versions: readonly SchemaVersion[]
  /** The version that each event is decoded to, by event name. */
  newest: ReadonlyMap<string, SchemaVersion>
  /** The version that each event is written in: the newest that the previous release can read. */
  written: ReadonlyMap<string, SchemaVersion>
  ids: SchemaIds
}

interface Release {
  // The versions of an event, oldest first.
  files: SchemaFile[]
  ids: SchemaIds
  readOnly: ReadonlySet<string>
}

export function eventSchemas({ files, ids, readOnly }: Release): EventSchemas {
  const versions = files.map((file) => schemaVersion(file, ids))
  const written = versions.filter(({ key }) => !readOnly.has(key))
  return { versions, newest: lastByName(versions), written: lastByName(written), ids }
}

const lastByName = (versions: SchemaVersion[]) =>
  new Map(versions.map((version) => [version.name, version]))

export const committedSchemas = eventSchemas({
  files: readSchemaFiles(),
  ids: committed,
  readOnly,
})

/** Returns the newest schema of the sessions' fact rows. */
export const factsSchema = lazy(() => {
  const newest = readFactsSchemas().at(-1)
  if (!newest) throw new Error('there is no schema of facts')
  return { key: newest.key, type: typeOf(newest.schema) }
})

/** Returns the schema's id. Throws if there is no such schema. */
export function schemaIdOf(ids: SchemaIds, key: string): number {
  const id = ids[key]
  if (id === undefined) throw new Error(`schema ${key} has no id: run npm run schemas`)
  return id
}

function schemaVersion({ name, key, schema }: SchemaFile, ids: SchemaIds): SchemaVersion {
  const id = schemaIdOf(ids, key)
  const type = lazy(() => typeOf(schema))
  const hasField = (field: string) => schema.fields.some(({ name }) => name === field)
  const sealer = lazy(() =>
    hasField('sealed')
      ? createEventSealer({ name, key, type: type(), decryptedType: typeOf(openedSchema(schema)) })
      : undefined,
  )
  return { name: eventName(name), key, id, type, hasCause: hasField('actor'), sealer }
}

const typeOf = (schema: object) => avro.Type.forSchema(schema as avro.Schema)

/** Returns a function that calls `create` once and caches its result. */
export function lazy<T>(create: () => T): () => T {
  let created: { value: T } | undefined
  return () => {
    created ??= { value: create() }
    return created.value
  }
}

function eventName(name: string): EventName {
  if (name in eventTopics) return name as EventName
  throw new Error(`no generated type for event ${name}: run npm run schemas`)
}
