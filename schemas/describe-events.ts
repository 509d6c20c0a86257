import { personalFields } from './personal.ts'

/** A version of an event's schema. */
interface EventVersion {
  topic: string
  name: string
  version: number
  schema: { doc?: string; fields: { name: string }[] }
}

const intro = `# Events

What is on each topic. \`npm run schemas\` makes this page of the \`.avsc\` files in \`schemas/\`, and [analysts](../guide/analysts.md) says how to read it.

- Every event has \`event_id\`, \`event_type\` and \`event_time\` as headers, and most have \`organization_id\` and \`environment\`.
- Members under \`sealed\` say something about a person. On the log they are null, empty or false by themselves, and stand encrypted in the member \`sealed\`.
- \`actor\` and \`request_id\` say who or what caused an event, and are left out below.
- Times are epoch milliseconds.
`

const leftOut: ReadonlySet<string> = new Set(['actor', 'request_id', 'sealed'])
const head = '| event | what happened | members | in `sealed` |\n|-|-|-|-|\n'

/** docs/reference/events.md, of all schemas of events; the versions of one event stand together, oldest first. */
export function describeEvents(files: EventVersion[]): string {
  const byTopic = Map.groupBy(files, ({ topic }) => topic)
  const topics = [...byTopic].map(([topic, ofTopic]) => {
    const byName = Map.groupBy(ofTopic, ({ name }) => name)
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
  const names = schema.fields.map((field) => field.name).filter((field) => !leftOut.has(field))
  const listed = (isPersonal: boolean) =>
    names.filter((field) => personal.includes(field) === isPersonal).map((field) => `\`${field}\``)
  return `| \`${name}\` | ${schema.doc ?? ''} | ${listed(false).join(', ')} | ${listed(true).join(', ')} |\n`
}
