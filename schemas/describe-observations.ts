import type { Form } from './lenient.ts'
import { behaviorMeanings, snapshotMeanings } from './observation-meanings.ts'
import { behaviorSchema, snapshotSchema } from './observations.ts'

const intro = `# What is observed

The members of \`snapshot\` and \`behavior\` in the [collect protocol](collect-protocol.md#observations). \`npm run schemas\` makes this page of \`schemas/observations.ts\` and \`schemas/observation-meanings.ts\`.

- Every member may be absent or null, which means "not observed". A count of behaviour is then 0, a list empty.
- A value of another type, or a longer one, reads as not observed, and costs no other.
- "text of 512" has at most as many UTF-16 units. A count is an integer of 32 bits from 0 on, and a size a number from 0 on. "up to 100" is a list, and a longer one reads as empty.
- A hash is a text of 128 at most, or a number, of the client's own choosing: the same for the same input, on every visit. The browser SDK sends the first 32 hexadecimal digits of a SHA-256, of bytes or of JSON.
- Times and deviations of the browser SDK are by \`event.timeStamp\`, and have three decimals. A mean is null without a value, a deviation with fewer than two.
- Never send what a person typed, the names or values of fields, or which keys.
`

const page = [
  { title: 'Snapshot', named: 'snapshot', form: snapshotSchema.form, meanings: snapshotMeanings },
  { title: 'Behaviour', named: 'behavior', form: behaviorSchema.form, meanings: behaviorMeanings },
]

const about: Record<string, string> = {
  Snapshot: 'The state of page and device as the document begins. It comes in the first body.',
  Behaviour: 'What happened since the last body. A group with nothing in it has counts of 0.',
  native: 'Of an app; a page that sends it is taken for a script. Absent = null as a whole.',
}

/** docs/reference/observations.md. */
export function describeObservations(): string {
  const parts = page.map(({ title, named, form, meanings }) =>
    [`## ${title}\n\n${about[title]}\n`, ...groups(form, { named, meanings })].join('\n'),
  )
  return [intro, ...parts].join('\n')
}

interface Described {
  named: string
  meanings: Record<string, Record<string, string> | undefined>
}

function groups(form: Form, { named, meanings }: Described): string[] {
  return Object.entries(form).map(([name, members]) => {
    const rows = Object.entries(members).map(
      ([member, kind]) => `| \`${member}\` | ${kind} | ${meanings[name]?.[member] ?? ''} |\n`,
    )
    const note = about[name] ? `${about[name]}\n\n` : ''
    return `### \`${named}.${name}\`\n\n${note}| member | type | what it says |\n|-|-|-|\n${rows.join('')}`
  })
}
