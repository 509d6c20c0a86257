import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import type pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { eventTopics } from '../../../../schemas/events.ts'
import { loadView } from '../../../../services/cli/project/view.ts'
import { decision, id } from '../../../projections/world-events.ts'
import { visitorErased } from '../../../support/erased.ts'
import { eventually } from '../../../support/eventually.ts'
import { openTestLogs } from '../../../support/logs.ts'
import { placesOf } from '../../../support/people.ts'
import { ensureTopics, openProjectionWorld } from '../../../support/projections.ts'
import type { Place } from '../../../support/secret-scan.ts'
import { sessionScored, visitorLink } from '../../../support/session-scored.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { startView } from './start-view.ts'

/** A view that stores all personal data of events. */
const peopleView = `export default {
  name: 'people',
  version: 1,
  events: ['SessionScored', 'ClientUserAttached'],
  tables: {
    people: {
      columns: { session_id: 'text', address: 'text', url: 'text', agent: 'text', visitor: 'text', user: 'text' },
      key: ['session_id'],
    },
  },
  session: 'session_id',
  handle({ type, data, facts }) {
    const { session_id, request, visitor } = data
    const values = facts
      ? { address: facts.ip_address, url: request.url, agent: facts.user_agent, visitor: visitor?.id }
      : { user: data.client_user_id }
    return [{ table: 'people', key: { session_id }, to: (row) => ({ session_id, ...row, ...values }) }]
  },
}
`

describe.each(openTestLogs())('a view of personal data, on $name', async (testLog) => {
  const folder = temporaryFolder('people-view')
  const world = await openProjectionWorld()
  const log = await testLog.open()
  await ensureTopics(log)
  await log.ensureTopics([{ topic: eventTopics.VisitorErased, partitions: 1 }])
  afterAll(async () => {
    await world.close()
    await testLog.cleanup()
  })

  test('leaves no erased data in any database file after a vacuum', async () => {
    const file = path.join(folder, 'people.ts')
    await writeFile(file, peopleView)
    const { pool } = world.database
    const erasedPeople = [person(1), person(2)]
    const otherPeople = [person(3), person(4)]
    for (const someone of [...erasedPeople, ...otherPeople]) await world.append(log, someone.events)
    const { running } = await startView({ pool, log, codec: world.codec }, await loadView(file))
    const sql = 'select count("user")::integer as n from view_people.people'
    const hasRows = (n: number) =>
      eventually(async () => expect((await pool.query(sql)).rows).toEqual([{ n }]))
    const filesWith = async ({ values }: Person) => {
      const files = await viewFiles(pool, 'people')
      return Object.values(values).map((value) => placesOf([value], files))
    }
    const everywhere = Array(5).fill(expect.arrayContaining(['people']))

    await hasRows(4)
    for (const someone of [...erasedPeople, ...otherPeople])
      expect(await filesWith(someone)).toEqual(everywhere)
    const erased = visitorErased(erasedPeople.map(({ session }) => session))
    await world.append(log, [
      { meta: decision(9).meta, event: { type: 'VisitorErased', data: erased } },
    ])
    await hasRows(2)
    // Later events of an erased session are skipped.
    await world.append(log, [...person(1, 100).events, ...person(5).events])
    await hasRows(3)
    await running.stop()
    const nowhere = Array(5).fill([])
    // Retry: a vacuum keeps rows that an older transaction may still see.
    await eventually(async () => {
      await vacuumView(pool, 'people')
      for (const someone of erasedPeople) expect(await filesWith(someone)).toEqual(nowhere)
    })
    for (const someone of otherPeople) expect(await filesWith(someone)).toEqual(everywhere)
  })
})

type Person = ReturnType<typeof person>

function person(n: number, later = 0) {
  const values = {
    address: `203.0.113.${100 + n}`,
    url: `https://shop.example/cart-of-${n}x`,
    agent: `Agent/of-${n}x`,
    visitor: id('vid', 7000 + n),
    user: `person-${n}@shop.example`,
  }
  const session = id('sid', n)
  const { request, network } = sessionScored()
  const { event, meta } = decision(later + n, {
    session: n,
    visitor: visitorLink({ id: values.visitor }),
    request: { ...request, url: values.url, user_agent: values.agent, ip_address: values.address },
    network: { ...network, ip_address: values.address },
  })
  const event_id = id('evt', 5000 + later + n)
  const owner = { organization_id: id('org', 1), environment: 'live' } as const
  const attached = {
    type: 'ClientUserAttached',
    data: { session_id: session, ...owner, event_id, client_user_id: values.user, attached_at: 1 },
  } as const
  const events = [
    { event, meta },
    { event: attached, meta: { ...meta, eventId: event_id } },
  ]
  return { session, values, events }
}

/** Returns the data files of all tables and indexes in the view's schemas, with the relation names. */
async function viewFiles(pool: pg.Pool, view: string): Promise<Place[]> {
  await pool.query('checkpoint')
  const { rows } = await pool.query<Place>(
    `with own as (select c.* from pg_class c join pg_namespace n on n.oid = relnamespace where nspname ~ $1),
       whole as (select oid, relname, relkind from own
         union select t.oid, own.relname, t.relkind from own join pg_class t on t.oid = own.reltoastrelid
         union select indexrelid, own.relname, 'i' from own join pg_index on indrelid = own.reltoastrelid)
     select relname as name, pg_read_binary_file(pg_relation_filepath(oid)) as bytes
     from whole where relkind in ('r', 'i', 't') order by 1`,
    [`^view_${view}(_b\\d+)?$`],
  )
  return rows
}

/** Rewrites the view's tables without deleted rows. */
async function vacuumView(pool: pg.Pool, view: string): Promise<void> {
  const { rows } = await pool.query<{ tables: string }>(
    `select string_agg(format('%I.%I', schemaname, tablename), ', ') as tables from pg_tables where schemaname ~ $1`,
    [`^view_${view}(_b\\d+)?$`],
  )
  await pool.query(`vacuum full ${rows[0]?.tables}`)
}
