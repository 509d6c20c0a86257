// Writes schemas/events.ts from the .avsc files, and docs/reference/events.md and observations.md, and gives new schemas their id in
// schemas/ids.json. Run by `npm run schemas`; a test fails when the result on disk is stale.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describeEvents } from './describe-events.ts'
import { describeObservations } from './describe-observations.ts'

const root = import.meta.dirname
const topicFolders = [
  'collect',
  'corrections',
  'erasures',
  'gate',
  'operations',
  'organizations',
  'policies',
  'sessions',
  'visitors',
  'webhooks',
] as const

type AvroType =
  | string
  | AvroType[]
  | AvroRecord
  | { type: 'enum'; name: string; symbols: string[] }
  | { type: 'array'; items: AvroType }
  | { type: 'map'; values: AvroType }
  | { type: 'long' | 'string' | 'int' | 'double' | 'boolean' | 'bytes' }
interface AvroRecord {
  type: 'record'
  name: string
  doc?: string
  fields: AvroField[]
}
interface EventSchema extends AvroRecord {
  /** Fields, whose values are joined by a slash. */
  partition_key: string | string[] | { field: string; if_null: string }
  /** The session or Gate session whose data key encrypts the event; null for events that are about none. */
  data_key_subject: string | { field: string; if: string; is: string[] } | null
}
interface AvroField {
  name: string
  type: AvroType
  default?: unknown
  /** Null only where what is personal is encrypted, so an event that was opened has it. */
  null_if?: 'sealed'
  doc?: string
}
export interface SchemaFile {
  topic: string
  name: string
  version: number
  key: string
  schema: EventSchema
}

/** All schemas of events; the versions of one event stand together, oldest first. */
export const readSchemaFiles = (): SchemaFile[] => schemasIn(topicFolders)

/** The schema of what is published of sessions: a copy of rows, which nothing follows from. Its oldest version is first. */
export const readFactsSchemas = (): SchemaFile[] => schemasIn(['facts'])

function schemasIn(folders: readonly string[]): SchemaFile[] {
  return folders.flatMap((topic) =>
    readdirSync(path.join(root, topic))
      .filter((file) => file.endsWith('.avsc'))
      .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
      .map((file) => {
        const match = /^(\w+)\.v(\d+)\.avsc$/.exec(file)
        if (!match?.[1] || !match[2])
          throw new Error(`schema file name not understood: ${topic}/${file}`)
        const schema: EventSchema = JSON.parse(readFileSync(path.join(root, topic, file), 'utf8'))
        return {
          topic,
          name: match[1],
          version: Number(match[2]),
          key: `${topic}/${match[1]}.v${match[2]}`,
          schema,
        }
      }),
  )
}

export function assignIds(
  files: SchemaFile[],
  committed: Record<string, number>,
): Record<string, number> {
  const ids = { ...committed }
  let next = Math.max(0, ...Object.values(ids)) + 1
  for (const file of files) ids[file.key] ??= next++
  return ids
}

/** The schema of an event that was opened, or was never encrypted: what is in every such event is not null. */
export function openedSchema(schema: AvroRecord): AvroRecord {
  return { ...schema, fields: schema.fields.map(openedField) }
}

function openedField({ null_if, ...field }: AvroField): AvroField {
  const { name, type, doc } = field
  if (!Array.isArray(type)) return field
  const parts = type.map((part) =>
    typeof part === 'object' && 'fields' in part ? openedSchema(part) : part,
  )
  const [only] = parts.filter((part) => part !== 'null')
  return null_if && only ? { name, type: only, ...(doc && { doc }) } : { ...field, type: parts }
}

const primitives: Record<string, string> = {
  string: 'string',
  int: 'number',
  long: 'number',
  double: 'number',
  boolean: 'boolean',
  bytes: 'Buffer',
  null: 'null',
}

function typeOf(type: AvroType, named: Map<string, string>): string {
  if (typeof type === 'string') return primitives[type] ?? type
  if (Array.isArray(type)) return type.map((part) => typeOf(part, named)).join(' | ')
  switch (type.type) {
    case 'record':
      return nameType(named, type.name, recordBody(type, named))
    case 'enum':
      return nameType(
        named,
        type.name,
        `export type ${type.name} = ${type.symbols.map((s) => `'${s}'`).join(' | ')}\n`,
      )
    case 'array': {
      const item = typeOf(type.items, named)
      return item.includes('|') ? `(${item})[]` : `${item}[]`
    }
    case 'map':
      return `Record<string, ${typeOf(type.values, named)}>`
    default:
      return primitives[type.type] ?? type.type
  }
}

function nameType(named: Map<string, string>, name: string, body: string): string {
  const known = named.get(name)
  if (known !== undefined && known !== body)
    throw new Error(`two different types are named ${name}`)
  named.set(name, body)
  return name
}

function recordBody(record: AvroRecord, named: Map<string, string>): string {
  // Only the codec knows what is encrypted, and how.
  const typed = record.fields.filter(({ name }) => name !== 'sealed')
  const fields = typed.map((field) => {
    const doc = field.doc ? `  /** ${field.doc} */\n` : ''
    return `${doc}  ${field.name}: ${typeOf(field.type, named)}\n`
  })
  const doc = record.doc ? `/** ${record.doc} */\n` : ''
  return `${doc}export interface ${record.name} {\n${fields.join('')}}\n`
}

const cause = ['actor', 'request_id']

// The cause of an event is a type of its own, because whoever appends the event adds it.
function withoutCause({ fields, ...schema }: AvroRecord): AvroRecord {
  return { ...schema, fields: fields.filter(({ name }) => !cause.includes(name)) }
}

const topicOf = ({ topic }: SchemaFile) => `'tidegate.${topic}.v1'`

function partitionKey({ schema: { partition_key: key } }: SchemaFile): string {
  if (typeof key === 'string') return `({ ${key} }) => ${key}`
  if ('field' in key) return `({ ${key.field} }) => ${key.field} ?? '${key.if_null}'`
  return `({ ${key.join(', ')} }) => \`${key.map((field) => `\${${field}}`).join('/')}\``
}

function dataKeySubject({ name, schema: { data_key_subject: subject } }: SchemaFile): string {
  if (subject === null) return '() => null'
  if (typeof subject === 'string') return `({ ${subject} }) => ${subject}`
  const { field, if: tested, is } = subject
  const condition = is.map((value) => `${tested} === '${value}'`).join(' || ')
  return `({ ${tested}, ${field} }: Pick<${name}, '${tested}' | '${field}'>) => (${condition} ? ${field} : null)`
}

export function generateTypes(files: SchemaFile[]): string {
  const newest = new Map(files.map((file) => [file.name, file]))
  const named = new Map<string, string>()
  const names = [...newest.values()]
  const byName = (print: (file: SchemaFile) => string) =>
    names.map((file) => `  ${file.name}: ${print(file)},\n`).join('')
  const caused = names.filter(({ schema }) => schema.fields.some(({ name }) => name === 'actor'))
  const fields = caused[0]?.schema.fields.filter(({ name }) => cause.includes(name)) ?? []
  typeOf({ type: 'record', name: 'Cause', fields }, named)
  for (const { schema } of names) typeOf(withoutCause(openedSchema(schema)), named)
  return [
    '// Generated from the .avsc files by `npm run schemas`. Times are epoch milliseconds.\n',
    ...named.values(),
    `/** Those whose records have a \`Cause\`, too. */\nexport const causedNames = [\n${caused.map((f) => `  '${f.name}',\n`).join('')}] as const\nexport type CausedName = (typeof causedNames)[number]\n`,
    `export interface EventTypes {\n${names.map((f) => `  ${f.name}: ${f.name}\n`).join('')}}\n`,
    `export const eventTopics = {\n${byName(topicOf)}} as const\n`,
    `export const partitionKeys: { readonly [E in keyof EventTypes]: (data: EventTypes[E]) => string } = {\n${byName(partitionKey)}}\n`,
    `/** The session, or Gate session, whose data key encrypts what an event says about a person. */\nexport const dataKeySubjects = {\n${byName(dataKeySubject)}} satisfies { readonly [E in keyof EventTypes]: (data: EventTypes[E]) => string | null }\n`,
  ].join('\n')
}

if (import.meta.main) {
  const files = readSchemaFiles()
  const idsFile = path.join(root, 'ids.json')
  const ids = assignIds(
    [...files, ...readFactsSchemas()],
    JSON.parse(readFileSync(idsFile, 'utf8')),
  )
  writeFileSync(idsFile, `${JSON.stringify(ids, null, 2)}\n`)
  writeFileSync(path.join(root, 'events.ts'), generateTypes(files))
  writeFileSync(path.join(root, '../docs/reference/observations.md'), describeObservations())
  writeFileSync(path.join(root, '../docs/reference/events.md'), describeEvents(files))
}
