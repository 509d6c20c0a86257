import avro from 'avsc'
import { type EventTypes, eventTopics } from '../../schemas/events.ts'
import { readSchemaFiles } from '../../schemas/generate.ts'
import { createEventSealer, type EventSealer } from './sealed-event.ts'

export type EventName = keyof EventTypes

/** One version of an event. */
export interface SchemaVersion {
  name: EventName
  key: string
  // Made when first asked for: a command that needs few of them does not wait for all.
  type: () => avro.Type
  isCaused: boolean
  sealer: () => EventSealer | undefined
}

const files = readSchemaFiles()
export const schemaVersions: SchemaVersion[] = files.map(({ name, key, schema }) => {
  const type = lazy(() => avro.Type.forSchema(schema as unknown as avro.Schema))
  const has = (field: string) => schema.fields.some((one) => one.name === field)
  const hasSealed = has('sealed')
  const sealer = lazy(() => (hasSealed ? createEventSealer({ name, key, type: type() }) : undefined))
  return { name: eventName(name), key, type, isCaused: has('actor'), sealer }
})
export const newestVersions = newestOf(schemaVersions)

export function newestOf(some: SchemaVersion[]): Map<EventName, SchemaVersion> {
  return new Map(some.map((version) => [version.name, version]))
}

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
