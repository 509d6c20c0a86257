import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { commandLine } from '../command-line.ts'

/** Writes a working example view. Throws if the file exists. */
export async function writeTemplate(file: string): Promise<void> {
  const name = path
    .basename(file)
    .replace(/\.\w+$/, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replace(/^[^a-z]+/, '')
  await writeFile(file, template(name.slice(0, 40) || 'my_view'), { flag: 'wx' })
  console.log(`Created ${file}. Fill its tables: ${commandLine('project', file)}`)
}

const template = (name: string) => `// A custom view: see docs/guide/own-views.md.
export default {
  // Its tables are in the schema view_${name}.
  name: '${name}',
  // Increment it when tables or the handler change: the tables are dropped and the log is read again.
  version: 1,
  events: ['SessionScored'],
  tables: {
    sessions: {
      columns: { session_id: 'text', verdict: 'text', country: 'text' },
      key: ['session_id'],
    },
  },
  // The session that a row belongs to: the row is deleted when the session is erased or expires.
  session: 'session_id',
  views: {
    verdicts: 'select country, verdict, count(*) from sessions group by country, verdict',
  },
  // Must depend only on the event and the row: no clock, no randomness, no external lookups.
  handle({ data, facts }) {
    const { session_id, verdict } = data
    // Decisions of a session arrive in order, so the last one is the newest.
    return [{ table: 'sessions', key: { session_id }, to: () => ({ session_id, verdict, country: facts.country }) }]
  },
}
`
