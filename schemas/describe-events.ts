import { personalFields } from './personal.ts'

interface EventVersion {
  topic: string
  name: string
  version: number
  schema: { doc?: string; fields: { name: string }[] }
}

const intro = `# Events

Events by topic. [Analysts](../guide/analysts.md) describes how to read them. \`npm run schemas\` generates this page from the \`.avsc\` files in \`schemas/\`.

- Every event has the headers \`event_id\`, \`event_type\` and \`event_time\`, and most have \`organization_id\` and \`environment\`.
- Members in the column \`sealed\` are personal data. On the log they are null, empty or false, and the member \`sealed\` has their encrypted values.
- \`actor\` and \`request_id\` identify the cause of an event. The tables omit them.
- Times are epoch milliseconds.
`

const omittedFields: ReadonlySet<string> = new Set(['actor', 'request_id', 'sealed'])
const head = '| event | what happened | members | sealed |\n|-|-|-|-|\n'

/** Returns the text of docs/reference/events.md. Versions of an event must be ordered oldest first. */
export function describeEvents(files: EventVersion[]): string {
  const byTopic = Map.groupBy(files, ({ topic }) => topic)
  const topics = [...byTopic].map(([topic, versions]) => {
    const byName = Map.groupBy(versions, ({ name }) => name)
    return `## tidegate.${topic}.v1\n\n${head}${[...byName.values()].map(rowOf).join('')}`
  })
  return [intro, ...topics].join('\n')
}

function rowOf(versions: EventVersion[]): string {
  const newest = versions.at(-1)
  if (!newest) return ''
  const { name, schema } = newest
  const personal: readonly string[] =
    Object.entries(personalFields).find(([event]) => event === name)?.[1] ?? []
  const names = schema.fields
    .map((field) => field.name)
    .filter((field) => !omittedFields.has(field))
  const listed = (isPersonal: boolean) =>
    names.filter((field) => personal.includes(field) === isPersonal).map((field) => `\`${field}\``)
  return `| \`${name}\` | ${schema.doc ?? ''} | ${listed(false).join(', ')} | ${listed(true).join(', ')} |\n`
}
