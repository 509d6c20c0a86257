import type { DocType } from './lenient.ts'
import { nativeDetail } from './native-detail.ts'
import { behaviorMeanings, snapshotMeanings, timing } from './observation-meanings.ts'
import { behaviorSchema, snapshotSchema } from './observations.ts'

const intro = `# Observations

The members of \`snapshot\` and \`behavior\` in the [collect protocol](collect-protocol.md#observations). \`npm run schemas\` generates this page from \`schemas/observations.ts\` and \`schemas/observation-meanings.ts\`.

- Every member can be absent or null, which means "not observed". A behavior count is then 0, and a list is empty.
- A value of another type, or one that is too long, counts as not observed and does not affect other members.
- A text has at most 512 UTF-16 code units, unless the type says otherwise. A count is a non-negative 32-bit integer; a size is a non-negative number. "up to 100" is a list; a longer list counts as empty.
- A hash is a number, or a text of at most 128 UTF-16 code units. Clients choose the hash function and must not change it. The browser SDK sends 32 hexadecimal digits of a SHA-256.
- The browser SDK measures times by \`event.timeStamp\`, with three decimals. A mean of no values is null, and so is a deviation of fewer than two values.
- Never send typed text, field names, field values, or which keys were pressed.
`

const sections = [
  { title: 'Snapshot', path: 'snapshot', schema: snapshotSchema, meanings: snapshotMeanings },
  { title: 'Behavior', path: 'behavior', schema: behaviorSchema, meanings: behaviorMeanings },
]

const introductions: Record<string, string> = {
  Snapshot: 'State of the page and device when the document starts, sent in the first body.',
  Behavior: `Input since the previous body. A group without events has counts of 0. Each group also has these members:

${Object.entries(timing)
  .map(([member, meaning]) => `- \`${member}\`: ${meaning}`)
  .join('\n')}`,
  native:
    "Only for apps: a page that sends this group is treated as a script. The `snapshot.native.` tables below list its groups. They contain the app's own findings, which Tidegate cannot verify.",
}

/** Returns the text of docs/reference/observations.md. */
export function describeObservations(): string {
  const parts = sections.map(({ title, path, schema, meanings }) =>
    [
      `## ${title}\n\n${introductions[title]}\n`,
      ...groupTables(schema.docType, { path, meanings }),
      ...(path === 'snapshot' ? nativeTables() : []),
    ].join('\n'),
  )
  return [intro, ...parts].join('\n')
}

function nativeTables(): string[] {
  return Object.entries(nativeDetail).map(([name, members]) => {
    const rows = Object.entries(members).map(([member, [{ docType }, meaning]]) =>
      row(member, docType, meaning),
    )
    return `### \`snapshot.native.${name}\`\n\n${head}${rows.join('')}`
  })
}

interface SectionDocs {
  path: string
  meanings: Record<string, Record<string, string> | undefined>
}

// Returns one table per group. Groups with equal members share a table.
function groupTables(docType: DocType, { path, meanings }: SectionDocs): string[] {
  const tables = Object.entries(docType).map(([name, members]) => {
    const listed = Object.entries(members).filter(([member]) => !(member in timing))
    const rows = listed.map(([member, type]) => row(member, type, meanings[name]?.[member] ?? ''))
    const note = introductions[name] ? `${introductions[name]}\n\n` : ''
    return { name: `\`${path}.${name}\``, text: `${note}${head}${rows.join('')}` }
  })
  return [...Map.groupBy(tables, ({ text }) => text)].map(
    ([text, groups]) => `### ${groups.map(({ name }) => name).join(', ')}\n\n${text}`,
  )
}

const row = (member: string, docType: DocType, meaning: string) =>
  `| \`${member}\` | ${typeof docType === 'string' ? docType : 'group'} | ${meaning} |\n`

const head = '| member | type | meaning |\n|-|-|-|\n'
