import type { Form } from './lenient.ts'
import { nativeDetail } from './native-detail.ts'
import { behaviorMeanings, snapshotMeanings, timing } from './observation-meanings.ts'
import { behaviorSchema, snapshotSchema } from './observations.ts'

const intro = `# Observations

The members of \`snapshot\` and \`behavior\` in the [collect protocol](collect-protocol.md#observations). \`npm run schemas\` generates this page from \`schemas/observations.ts\` and \`schemas/observation-meanings.ts\`.

- Every member can be absent or null, which means "not observed". A behavior count is then 0, and a list is empty.
- A value of another type, or one that is too long, counts as not observed and does not affect other members.
- A text has at most 512 UTF-16 units, unless the type says otherwise. A count is a 32-bit integer from 0 up; a size is a non-negative number. "up to 100" is a list; a longer list counts as empty.
- A hash is a text of at most 128 UTF-16 units or a number. The client chooses the function, but it must be stable. The browser SDK sends 32 hexadecimal digits of a SHA-256.
- The browser SDK measures times by \`event.timeStamp\`, with three decimals. A mean without values is null, as is a deviation of fewer than two values.
- Never send typed text, names or values of fields, or the identity of keys.
`

const sections = [
  { title: 'Snapshot', path: 'snapshot', form: snapshotSchema.form, meanings: snapshotMeanings },
  { title: 'Behavior', path: 'behavior', form: behaviorSchema.form, meanings: behaviorMeanings },
]

const introductions: Record<string, string> = {
  Snapshot: 'State of the page and device when the document starts, sent in the first body.',
  Behavior: `Input since the last body. A group without events has counts of 0. Each group also has these members:

${Object.entries(timing)
  .map(([member, meaning]) => `- \`${member}\`: ${meaning}`)
  .join('\n')}`,
  native:
    'Only for apps: a page that sends this group is treated as a script. The `snapshot.native.` tables below list its groups: findings of the app itself, which Tidegate cannot verify.',
}

/** Returns docs/reference/observations.md. */
export function describeObservations(): string {
  const parts = sections.map(({ title, path, form, meanings }) =>
    [
      `## ${title}\n\n${introductions[title]}\n`,
      ...groupTables(form, { path, meanings }),
      ...(path === 'snapshot' ? nativeTables() : []),
    ].join('\n'),
  )
  return [intro, ...parts].join('\n')
}

function nativeTables(): string[] {
  return Object.entries(nativeDetail).map(([name, members]) => {
    const rows = Object.entries(members).map(([member, [{ form }, meaning]]) =>
      row(member, form, meaning),
    )
    return `### \`snapshot.native.${name}\`\n\n${head}${rows.join('')}`
  })
}

interface SectionText {
  path: string
  meanings: Record<string, Record<string, string> | undefined>
}

// Returns one table per group, shared by groups with equal members.
function groupTables(form: Form, { path, meanings }: SectionText): string[] {
  const tables = Object.entries(form).map(([name, members]) => {
    const listed = Object.entries(members).filter(([member]) => !(member in timing))
    const rows = listed.map(([member, type]) => row(member, type, meanings[name]?.[member] ?? ''))
    const note = introductions[name] ? `${introductions[name]}\n\n` : ''
    return { name: `\`${path}.${name}\``, text: `${note}${head}${rows.join('')}` }
  })
  return [...Map.groupBy(tables, ({ text }) => text)].map(
    ([text, groups]) => `### ${groups.map(({ name }) => name).join(', ')}\n\n${text}`,
  )
}

const row = (member: string, form: Form, meaning: string) =>
  `| \`${member}\` | ${typeof form === 'string' ? form : 'group'} | ${meaning} |\n`

const head = '| member | type | meaning |\n|-|-|-|\n'
