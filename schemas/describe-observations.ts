import type { Form } from './lenient.ts'
import { nativeDetail } from './native-detail.ts'
import { behaviorMeanings, snapshotMeanings, timing } from './observation-meanings.ts'
import { behaviorSchema, snapshotSchema } from './observations.ts'

const intro = `# What is observed

The members of \`snapshot\` and \`behavior\` in the [collect protocol](collect-protocol.md#observations). \`npm run schemas\` makes this page of \`schemas/observations.ts\` and \`schemas/observation-meanings.ts\`.

- Every member may be absent or null, which means "not observed". A count of behaviour is then 0, a list empty.
- A value of another type, or a longer one, reads as not observed, and costs no other.
- A text has at most 512 UTF-16 units, or as many as the type says. A count is an integer of 32 bits from 0 on, a size a number from 0 on. "up to 100" is a list, and a longer one reads as empty.
- A hash is a text of at most 128 or a number, of the client's own choosing, but always the same for the same input. The browser SDK sends 32 hexadecimal digits of a SHA-256.
- Times of the browser SDK are by \`event.timeStamp\`, with three decimals. A mean is null without a value, a deviation with fewer than two.
- Never send what a person typed, the names or values of fields, or which keys.
`

const page = [
  { title: 'Snapshot', named: 'snapshot', form: snapshotSchema.form, meanings: snapshotMeanings },
  { title: 'Behaviour', named: 'behavior', form: behaviorSchema.form, meanings: behaviorMeanings },
]

const about: Record<string, string> = {
  Snapshot: 'The state of page and device as the document begins. It comes in the first body.',
  Behaviour: `What happened since the last body. A group with nothing in it has counts of 0. Each has these members, too:

${Object.entries(timing)
  .map(([member, meaning]) => `- \`${member}\`: ${meaning}`)
  .join('\n')}`,
  native:
    'Of an app; a page that sends it is taken for a script. Absent = null as a whole. The tables of `snapshot.native.` that follow are of its groups, and have what an app found. Nothing verifies it.',
}

/** docs/reference/observations.md. */
export function describeObservations(): string {
  const parts = page.map(({ title, named, form, meanings }) =>
    [
      `## ${title}\n\n${about[title]}\n`,
      ...groups(form, { named, meanings }),
      ...(named === 'snapshot' ? ofApps() : []),
    ].join('\n'),
  )
  return [intro, ...parts].join('\n')
}

function ofApps(): string[] {
  return Object.entries(nativeDetail).map(([name, members]) => {
    const rows = Object.entries(members).map(([member, [{ form }, meaning]]) =>
      row(member, form, meaning),
    )
    return `### \`snapshot.native.${name}\`\n\n${head}${rows.join('')}`
  })
}

interface Described {
  named: string
  meanings: Record<string, Record<string, string> | undefined>
}

// Groups with equal members have one table.
function groups(form: Form, { named, meanings }: Described): string[] {
  const tables = Object.entries(form).map(([name, members]) => {
    const own = Object.entries(members).filter(([member]) => !(member in timing))
    const rows = own.map(([member, kind]) => row(member, kind, meanings[name]?.[member] ?? ''))
    const note = about[name] ? `${about[name]}\n\n` : ''
    return { name: `\`${named}.${name}\``, text: `${note}${head}${rows.join('')}` }
  })
  return [...Map.groupBy(tables, ({ text }) => text)].map(
    ([text, alike]) => `### ${alike.map(({ name }) => name).join(', ')}\n\n${text}`,
  )
}

const row = (member: string, kind: Form, meaning: string) =>
  `| \`${member}\` | ${typeof kind === 'string' ? kind : 'group'} | ${meaning} |\n`

const head = '| member | type | what it says |\n|-|-|-|\n'
