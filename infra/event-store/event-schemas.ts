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

/** Ids of schemas by key, such as `organizations/ApiKeyIssued.v1`. */
export type SchemaIds = Record<string, number>

/** One version of an event. */
export interface SchemaVersion {
  name: EventName
  key: string
  /** The committed one. */
  id: number
  /** Made when first asked for: a command that needs few of them does not wait for all. */
  type: () => avro.Type
  isCaused: boolean
  sealer: () => EventSealer | undefined
}

/**
 * Versions that this release reads and does not write yet. A release that brings a version only reads it, so that one
 * can go back to the release before, which does not know it. The release after it takes the version away from here.
 */
const readOnly: ReadonlySet<string> = new Set()

export interface EventSchemas {
  versions: readonly SchemaVersion[]
  /** By event: what is read is given in its newest version, and written in the newest that the release before reads. */
  newest: ReadonlyMap<string, SchemaVersion>
  written: ReadonlyMap<string, SchemaVersion>
  ids: SchemaIds
}

interface Release {
  // The versions of an event come oldest first.
  files: SchemaFile[]
  ids: SchemaIds
  readOnly: ReadonlySet<string>
}

export function eventSchemas({ files, ids, readOnly }: Release): EventSchemas {
  const versions = files.map((file) => schemaVersion(file, ids))
  const written = versions.filter(({ key }) => !readOnly.has(key))
  return { versions, newest: lastOf(versions), written: lastOf(written), ids }
}

const lastOf = (versions: SchemaVersion[]) =>
  new Map(versions.map((version) => [version.name, version]))

export const committedSchemas = eventSchemas({
  files: readSchemaFiles(),
  ids: committed,
  readOnly,
})

/** Of what is published of sessions. */
export const factsSchema = lazy(() => {
  const newest = readFactsSchemas().at(-1)
  if (!newest) throw new Error('there is no schema of facts')
  return { key: newest.key, type: typeOf(newest.schema) }
})

/** Throws where there is no such schema. */
export function idIn(ids: SchemaIds, key: string): number {
  const id = ids[key]
  if (id === undefined) throw new Error(`schema ${key} has no id: run npm run schemas`)
  return id
}

function schemaVersion({ name, key, schema }: SchemaFile, ids: SchemaIds): SchemaVersion {
  const id = idIn(ids, key)
  const type = lazy(() => typeOf(schema))
  const has = (field: string) => schema.fields.some((one) => one.name === field)
  const sealer = lazy(() =>
    has('sealed')
      ? createEventSealer({ name, key, type: type(), opened: typeOf(openedSchema(schema)) })
      : undefined,
  )
  return { name: eventName(name), key, id, type, isCaused: has('actor'), sealer }
}

const typeOf = (schema: object) => avro.Type.forSchema(schema as avro.Schema)

export function lazy<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

function eventName(name: string): EventName {
  if (name in eventTopics) return name as EventName
  throw new Error(`no generated type for event ${name}: run npm run schemas`)
}
