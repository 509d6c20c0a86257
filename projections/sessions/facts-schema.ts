import { factTimes, sessionFactNames } from './session-facts.ts'
import { sessions } from './tables.ts'

interface Published {
  avro: unknown
  /** SQL of the column as the driver gives it to Avro. */
  read(column: string): string
}

const asIs = (avro: unknown): Published => ({ avro, read: (column) => column })
const time: Published = {
  avro: { type: 'long', logicalType: 'timestamp-millis' },
  read: (column) => `round(extract(epoch from ${column}) * 1000)::float8`,
}

// By the type of the row's column.
const byType: Record<string, Published> = {
  text: { avro: 'string', read: (column) => `${column}::text` },
  inet: { avro: 'string', read: (column) => `host(${column})` },
  bigint: { avro: 'long', read: (column) => `${column}::float8` },
  integer: asIs('int'),
  boolean: asIs('boolean'),
  'text[]': asIs({ type: 'array', items: 'string' }),
  'integer[]': asIs({ type: 'array', items: 'int' }),
}

function publishedAs(name: string): Published {
  if (factTimes.includes(name)) return time
  const column = sessions.columns.find((one) => one.name === name)
  const published = column && byType[column.cast ?? column.type]
  if (!published) throw new Error(`the column ${name} cannot be published`)
  return published
}

/** The columns of `read.session_facts` as an Avro record. The newest schema in schemas/facts/ is a copy of it. */
export const factsRecord = () => ({
  type: 'record',
  name: 'SessionFacts',
  namespace: 'tidegate.facts',
  doc: 'What a session is known by, as far as its organization lets it be read. Null = not known, or kept back. docs/reference/session-facts.md says what the columns mean.',
  fields: sessionFactNames.map((name) =>
    name === 'session_id'
      ? { name, type: 'string' }
      : { name, type: ['null', publishedAs(name).avro], default: null },
  ),
})

/** What a query over the view, named `alias`, selects to get the record's fields. */
export const selectFacts = (alias: string): string =>
  sessionFactNames
    .map((name) => `${publishedAs(name).read(`${alias}.${name}`)} as ${name}`)
    .join(', ')
