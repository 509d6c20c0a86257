import { factTimes, sessionFactNames } from './session-facts.ts'
import { sessions } from './tables.ts'

interface PublishedType {
  avro: unknown
  /** Returns SQL that converts the column for the Avro encoder. */
  read(column: string): string
}

const unconverted = (avro: unknown): PublishedType => ({ avro, read: (column) => column })
const time: PublishedType = {
  avro: { type: 'long', logicalType: 'timestamp-millis' },
  read: (column) => `round(extract(epoch from ${column}) * 1000)::float8`,
}

// Keyed by column type.
const publishedTypes: Record<string, PublishedType> = {
  text: { avro: 'string', read: (column) => `${column}::text` },
  inet: { avro: 'string', read: (column) => `host(${column})` },
  bigint: { avro: 'long', read: (column) => `${column}::float8` },
  integer: unconverted('int'),
  boolean: unconverted('boolean'),
  'text[]': unconverted({ type: 'array', items: 'string' }),
  'integer[]': unconverted({ type: 'array', items: 'int' }),
}

function publishedTypeOf(name: string): PublishedType {
  if (factTimes.includes(name)) return time
  const column = sessions.columns.find((candidate) => candidate.name === name)
  const published = column && publishedTypes[column.cast ?? column.type]
  if (!published) throw new Error(`the column ${name} cannot be published`)
  return published
}

/** Returns the Avro schema of `read.session_facts`. It must equal the newest schema in schemas/facts/. */
export const factsRecord = () => ({
  type: 'record',
  name: 'SessionFacts',
  namespace: 'tidegate.facts',
  doc: "Flat row of a session for analysts. Null: unknown, or hidden by the organization's policy. docs/reference/session-facts.md describes the columns.",
  fields: sessionFactNames.map((name) =>
    name === 'session_id'
      ? { name, type: 'string' }
      : { name, type: ['null', publishedTypeOf(name).avro], default: null },
  ),
})

/** Returns a select list that reads the fields of `factsRecord` from the view. */
export const selectFacts = (alias: string): string =>
  sessionFactNames
    .map((name) => `${publishedTypeOf(name).read(`${alias}.${name}`)} as ${name}`)
    .join(', ')
