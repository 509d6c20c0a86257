import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type pg from 'pg'
import { selectFacts } from '../../../projections/sessions/facts-schema.ts'
import { openedSessionFacts } from '../../../projections/sessions/session-facts.ts'
import { sessionColumns } from './columns.ts'
import { type ExportManifest, type ExportPart, sessionList } from './manifest.ts'
import { moveIntoPlace, openPart, unfinished } from './part.ts'

export type ChosenSessions = Pick<ExportManifest, 'since' | 'until' | 'filters'>

// A smaller row group is slower to read.
const together = 10_000

/**
 * Writes the ids of the sessions into the folder, in their order, and returns how many there are. One statement chooses
 * them, so that all are of one moment.
 */
export async function chooseSessions(pool: pg.Pool, folder: string, those: ChosenSessions): Promise<number> {
  const file = path.join(folder, sessionList)
  const list = await open(unfinished(file), 'w')
  let count = 0
  try {
    for await (const ids of chosenIds(pool, those)) {
      await list.writeFile(ids.map((id) => `${id}\n`).join(''))
      count += ids.length
    }
  } finally {
    await list.close()
  }
  await moveIntoPlace(file)
  return count
}

async function* chosenIds(pool: pg.Pool, those: ChosenSessions): AsyncGenerator<string[]> {
  const tx = await pool.connect()
  try {
    await tx.query('begin read only; set local cursor_tuple_fraction = 1')
    await tx.query(choice(those))
    for (;;) {
      const { rows } = await tx.query<{ session_id: string }>(`fetch ${together} from chosen`)
      if (rows.length === 0) return
      yield rows.map(({ session_id }) => session_id)
    }
  } finally {
    tx.release(true)
  }
}

const choice = ({ since, until, filters }: ChosenSessions) => ({
  text: `declare chosen no scroll cursor for
    select session_id from read.session_facts
    where evaluated_at_ms >= $1 and evaluated_at_ms < $2
      and ($3::text is null or organization_id = $3) and ($4::text is null or environment = $4)
    order by session_id`,
  values: [since, until, filters.organization_id, filters.environment],
})

export function sessionParts(
  count: number,
  { format, each }: { format: string; each: number },
): ExportPart[] {
  // One at least, which has the columns.
  return Array.from({ length: Math.max(1, Math.ceil(count / each)) }, (_, i) => ({
    file: `sessions-${String(i + 1).padStart(6, '0')}.${format}`,
    ...{ partition: null, from: i * each, to: Math.min(count, (i + 1) * each), rows: null },
  }))
}

interface Writing {
  pool: pg.Pool
  folder: string
  manifest: ExportManifest
  /** Gets each part with its rows once it is whole, and how many sessions were looked up for it. */
  onPart(part: ExportPart, rows: number): Promise<void>
  onDone(sessions: number): void
}

/** Makes the parts, which are in their order, with the rows as they are now. */
export async function writeSessions(writing: Writing, parts: ExportPart[]): Promise<void> {
  const ids = idsIn(path.join(writing.folder, sessionList))
  let place = 0
  for (const part of parts) {
    for (; place < part.from; place++) await ids.next()
    const writer = await openPart(path.join(writing.folder, part.file), {
      format: writing.manifest.format,
      columns: sessionColumns(),
      together,
    })
    while (place < part.to) {
      const some = await take(ids, Math.min(together, part.to - place))
      await writer.add(await rowsOf(writing, some))
      place += some.length
      writing.onDone(some.length)
    }
    await writing.onPart(part, await writer.finish())
  }
  await ids.return(undefined)
}

async function* idsIn(file: string): AsyncGenerator<string, undefined> {
  yield* createInterface({ input: createReadStream(file), crlfDelay: Infinity })
  return undefined
}

async function take(ids: AsyncGenerator<string, undefined>, count: number): Promise<string[]> {
  const some: string[] = []
  while (some.length < count) {
    const { value } = await ids.next()
    if (value === undefined) throw new Error(`${sessionList} ends too early. --output needs a new folder.`)
    some.push(value)
  }
  return some
}

async function rowsOf({ pool, manifest }: Writing, ids: string[]): Promise<Record<string, unknown>[]> {
  const source = manifest.is_open ? `(${openedSessionFacts('read')})` : 'read.session_facts'
  const { rows } = await pool.query<Record<string, unknown>>(
    `select ${selectFacts('f')} from ${source} f where f.session_id = any($1) order by f.session_id`,
    [ids],
  )
  for (const row of rows) if (typeof row.repeats === 'string') row.repeats = JSON.parse(row.repeats)
  return rows
}
