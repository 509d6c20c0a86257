import { randomBytes, randomUUID } from 'node:crypto'
import { SQL } from '@event-driven-io/dumbo'
import { projections } from '@event-driven-io/emmett'
import {
  getPostgreSQLEventStore,
  postgreSQLRawSQLProjection,
} from '@event-driven-io/emmett-postgresql'
import pg from 'pg'
import { serveRounds } from '../round-server.ts'

/** About as many as the records of a Tidegate session. */
const eventsPerStream = 8

const projection = postgreSQLRawSQLProjection({
  name: 'streams',
  canHandle: ['Stored'],
  init: () =>
    SQL`create table if not exists streams (id text primary key, events int not null, last text not null)`,
  evolve: ({ data: { id, text } }) =>
    SQL`insert into streams values (${id}, 1, ${text.slice(0, 64)})
        on conflict (id) do update set events = streams.events + 1, last = excluded.last`,
})
const connectionString = process.env.DATABASE_URL
const pool = new pg.Pool({ connectionString, max: 20 })
const store = getPostgreSQLEventStore(connectionString, {
  projections: projections.inline([projection]),
  connectionOptions: { pool },
})
await store.schema.migrate()

/** Appends single events of 1 kB in streams of eight, `inFlight` at a time. Returns their number and the time. */
async function append({ inFlight, seconds }) {
  const begun = performance.now()
  let events = 0
  const client = async () => {
    while (performance.now() - begun < seconds * 1000) {
      const id = randomUUID()
      for (let i = 0; i < eventsPerStream; i++, events++) {
        const text = randomBytes(500).toString('hex')
        await store.appendToStream(id, [{ type: 'Stored', data: { id, text } }])
      }
    }
  }
  await Promise.all(Array.from({ length: inFlight }, client))
  return { requests: events, seconds: (performance.now() - begun) / 1000 }
}

await serveRounds({
  name: 'emmett',
  run: append,
  close: () => store.close().then(() => pool.end()),
})
