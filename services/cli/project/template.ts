import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { typed } from '../typed.ts'

/** Writes a view that runs as it is. A file that is there stays: it throws. */
export async function writeTemplate(file: string): Promise<void> {
  const name = path
    .basename(file)
    .replace(/\.\w+$/, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replace(/^[^a-z]+/, '')
  await writeFile(file, template(name.slice(0, 40) || 'my_view'), { flag: 'wx' })
  console.log(`${file} is there. Fill its tables: ${typed('project', file)}`)
}

const template = (name: string) => `// A view of your own: see docs/guide/own-views.md.
export default {
  // Its tables are in the schema view_${name}.
  name: '${name}',
  // Count it up when tables or the handler change: the tables are dropped then, and the log is read again.
  version: 1,
  events: ['SessionScored'],
  tables: {
    sessions: {
      columns: { session_id: 'text', verdict: 'text', country: 'text' },
      key: ['session_id'],
    },
  },
  // Rows are of this session: they go when it is erased or its time has ended.
  session: 'session_id',
  views: {
    verdicts: 'select country, verdict, count(*) from sessions group by country, verdict',
  },
  // A function of the event and the row alone: no clock, no randomness, no look-up elsewhere.
  handle({ data, facts }) {
    const { session_id, verdict } = data
    // Decisions of one session come in the order in which they were made, so the last one that comes is the newest.
    return [{ table: 'sessions', key: { session_id }, to: () => ({ session_id, verdict, country: facts.country }) }]
  },
}
`
