import type pg from 'pg'
import { migrateHome } from '../../infra/event-store/builds.ts'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import { runProjection } from '../../infra/event-store/runner.ts'
import type { EventLog, Position } from '../../infra/log/port.ts'
import { namingRecords } from '../../services/cli/project/poison.ts'
import { projectionOf } from '../../services/cli/project/projection.ts'
import type { View } from '../../services/cli/project/view.ts'
import { noSkips } from './no-skips.ts'
import { silent } from './projections.ts'
import type { Place } from './secret-scan.ts'

/** Fills the view as `tidegate project` does. `stops` gets where it stands still. */
export async function startView(
  { pool, log, codec }: { pool: pg.Pool; log: EventLog; codec: EventCodec },
  view: View,
) {
  const projection = projectionOf(view, 'view.ts')
  const stops: { at: Position; error: unknown }[] = []
  await migrateHome(pool, projection)
  const onStopped = (at: Position, error: unknown) => void stops.push({ at, error })
  const running = await runProjection({
    projection,
    log,
    pool,
    codec: namingRecords(codec),
    logger: silent,
    skips: noSkips,
    onStopped,
    applied: { advance: () => {}, onAdvance: () => () => {} },
  })
  return { projection, running, stops }
}

/** All that events say of a person, as it is read. */
export const peopleView = `export default {
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
    const said = facts
      ? { address: facts.ip_address, url: request.url, agent: facts.user_agent, visitor: visitor?.id }
      : { user: data.client_user_id }
    return [{ table: 'people', key: { session_id }, to: (row) => ({ session_id, ...row, ...said }) }]
  },
}
`

/** The files of all relations in the view's schemas, as they lie on the disk, with the names of these. */
export async function viewFiles(pool: pg.Pool, view: string): Promise<Place[]> {
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

/** Gives back to the disk what was deleted from the view's tables. */
export async function vacuumView(pool: pg.Pool, view: string): Promise<void> {
  const { rows } = await pool.query<{ tables: string }>(
    `select string_agg(format('%I.%I', schemaname, tablename), ', ') as tables from pg_tables where schemaname ~ $1`,
    [`^view_${view}(_b\\d+)?$`],
  )
  await pool.query(`vacuum full ${rows[0]?.tables}`)
}
