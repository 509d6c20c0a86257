// Generates schemas/events.ts, docs/reference/events.md and docs/reference/observations.md, and assigns ids to new
// schemas in schemas/ids.json. Run it with `npm run schemas`; a test fails if the generated files are stale.
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
  /** Field or fields of the key. Values of several fields are joined with a slash. */
  partition_key: string | string[] | { field: string; if_null: string }
  /** Field that names the session or Gate session whose data key encrypts the event; null if there is none. */
  data_key_subject: string | { field: string; if: string; is: string[] } | null
}
interface AvroField {
  name: string
  type: AvroType
  default?: unknown
  /** Set if the field is null only while the event is encrypted. */
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

/** Reads all event schemas. Versions of an event are adjacent, oldest first. */
export const readSchemaFiles = (): SchemaFile[] => schemasIn(topicFolders)

/** Reads the schemas of the facts topic, which publishes copies of session rows, oldest version first. */
export const readFactsSchemas = (): SchemaFile[] => schemasIn(['facts'])

function schemasIn(folders: readonly string[]): SchemaFile[] {
  return folders.flatMap((topic) =>
    readdirSync(path.join(root, topic))
      .filter((file) => file.endsWith('.avsc'))
      .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
      .map((file) => {
        const match = /^(\w+)\.v(\d+)\.avsc$/.exec(file)
        if (!match?.[1] || !match[2])
          throw new Error(`schema file name must be <Name>.v<version>.avsc, got ${topic}/${file}`)
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

/** Returns the committed ids, and the next free ids for new schemas. */
export function assignIds(
  files: SchemaFile[],
  committed: Record<string, number>,
): Record<string, number> {
  const ids = { ...committed }
  let next = Math.max(0, ...Object.values(ids)) + 1
  for (const file of files) ids[file.key] ??= next++
  return ids
}

/** Returns the schema of decrypted events, in which fields with `null_if: sealed` are not nullable. */
export function openedSchema(schema: AvroRecord): AvroRecord {
  return { ...schema, fields: schema.fields.map(openedField) }
}

function openedField({ null_if, ...field }: AvroField): AvroField {
  const { name, type, doc } = field
  if (!Array.isArray(type)) return field
  const branches = type.map((branch) =>
    typeof branch === 'object' && 'fields' in branch ? openedSchema(branch) : branch,
  )
  const [nonNull] = branches.filter((branch) => branch !== 'null')
  if (!null_if || !nonNull) return { ...field, type: branches }
  return { name, type: nonNull, ...(doc && { doc }) }
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

// Returns the TypeScript type. Adds declarations of named types to `declarations`.
function typeOf(type: AvroType, declarations: Map<string, string>): string {
  if (typeof type === 'string') return primitives[type] ?? type
  if (Array.isArray(type)) return type.map((branch) => typeOf(branch, declarations)).join(' | ')
  switch (type.type) {
    case 'record':
      return declare(declarations, type.name, recordDeclaration(type, declarations))
    case 'enum':
      return declare(
        declarations,
        type.name,
        `export type ${type.name} = ${type.symbols.map((s) => `'${s}'`).join(' | ')}\n`,
      )
    case 'array': {
      const item = typeOf(type.items, declarations)
      return item.includes('|') ? `(${item})[]` : `${item}[]`
    }
    case 'map':
      return `Record<string, ${typeOf(type.values, declarations)}>`
    default:
      return primitives[type.type] ?? type.type
  }
}

function declare(declarations: Map<string, string>, name: string, code: string): string {
  const existing = declarations.get(name)
  if (existing !== undefined && existing !== code)
    throw new Error(`two different types are named ${name}`)
  declarations.set(name, code)
  return name
}

function recordDeclaration(record: AvroRecord, declarations: Map<string, string>): string {
  // Only the codec uses `sealed`.
  const visible = record.fields.filter(({ name }) => name !== 'sealed')
  const fields = visible.map((field) => {
    const doc = field.doc ? `  /** ${field.doc} */\n` : ''
    return `${doc}  ${field.name}: ${typeOf(field.type, declarations)}\n`
  })
  const doc = record.doc ? `/** ${record.doc} */\n` : ''
  return `${doc}export interface ${record.name} {\n${fields.join('')}}\n`
}

const causeFields = ['actor', 'request_id']

// Excludes the cause, which is added when the event is appended.
function withoutCause({ fields, ...schema }: AvroRecord): AvroRecord {
  return { ...schema, fields: fields.filter(({ name }) => !causeFields.includes(name)) }
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
  const { field, if: condition, is } = subject
  const test = is.map((value) => `${condition} === '${value}'`).join(' || ')
  return `({ ${condition}, ${field} }: Pick<${name}, '${condition}' | '${field}'>) => (${test} ? ${field} : null)`
}

export function generateTypes(files: SchemaFile[]): string {
  // Later versions replace earlier ones.
  const newest = [...new Map(files.map((file) => [file.name, file])).values()]
  const declarations = new Map<string, string>()
  const byName = (print: (file: SchemaFile) => string) =>
    newest.map((file) => `  ${file.name}: ${print(file)},\n`).join('')
  const caused = newest.filter(({ schema }) => schema.fields.some(({ name }) => name === 'actor'))
  const fields = caused[0]?.schema.fields.filter(({ name }) => causeFields.includes(name)) ?? []
  typeOf({ type: 'record', name: 'Cause', fields }, declarations)
  for (const { schema } of newest) typeOf(withoutCause(openedSchema(schema)), declarations)
  return [
    '// Generated from the .avsc files by `npm run schemas`. Times are epoch milliseconds.\n',
    ...declarations.values(),
    `/** Types of the events whose records also have a \`Cause\`. */\nexport const causedNames = [\n${caused.map((f) => `  '${f.name}',\n`).join('')}] as const\nexport type CausedName = (typeof causedNames)[number]\n`,
    `export interface EventTypes {\n${newest.map((f) => `  ${f.name}: ${f.name}\n`).join('')}}\n`,
    `export const eventTopics = {\n${byName(topicOf)}} as const\n`,
    `export const partitionKeys: { readonly [E in keyof EventTypes]: (data: EventTypes[E]) => string } = {\n${byName(partitionKey)}}\n`,
    `/** Functions that return the session or Gate session whose data key encrypts an event. */\nexport const dataKeySubjects = {\n${byName(dataKeySubject)}} satisfies { readonly [E in keyof EventTypes]: (data: EventTypes[E]) => string | null }\n`,
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
