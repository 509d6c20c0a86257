import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import type { Keyring } from '../crypto/keyring.ts'
import type { Random } from '../ids.ts'
import type { Db } from '../postgres/pool.ts'
import { type DataKeyRow, insertDataKeys, openDataKey, sealDataKey } from './data-key-table.ts'

const format = 'tidegate data keys'
const pageSize = 10_000

const header = z.object({ format: z.literal(format), version: z.literal(1), made_at: z.number() })
const row = z.object({
  session_id: z.string(),
  made_at: z.number(),
  sealed_key: z.base64().transform((text) => Buffer.from(text, 'base64')),
})
const end = z.object({ rows: z.number() })

/**
 * Writes the keys as they are stored, each sealed by a master key: a line that says when, one for each key, and one that
 * says how many there are. Returns that number. A file that is there already is left alone: EEXIST.
 */
export async function backUpDataKeys(
  db: Db,
  { file, now }: { file: string; now: number },
): Promise<number> {
  await using target = await open(file, 'wx', 0o600)
  const lines = (some: object[]) =>
    target.appendFile(some.map((one) => `${JSON.stringify(one)}\n`).join(''))
  await lines([{ format, version: 1, made_at: now }])
  let rows = 0
  for await (const page of keyPages(db)) {
    rows += page.length
    await lines(page.map((one) => ({ ...one, sealed_key: one.sealed_key?.toString('base64') })))
  }
  await lines([{ rows }])
  await target.sync()
  return rows
}

async function* keyPages(db: Db): AsyncGenerator<DataKeyRow[]> {
  for (let after = ''; ; ) {
    const { rows } = await db.query<DataKeyRow>(
      `select session_id, made_at::float8 as made_at, sealed_key
       from tidegate_keys.session_keys where session_id > $1 and sealed_key is not null
       order by session_id limit ${pageSize}`,
      [after],
    )
    const last = rows.at(-1)
    if (!last) return
    yield rows
    after = last.session_id
  }
}

export interface RestoredKeys {
  /** Epoch milliseconds. */
  madeAt: number
  rows: number
  /** How many keys were added, for sessions that had none and were not erased. */
  added: number
}

/**
 * Adds the keys of a backup. A session that has one, or was erased, stays as it is. Throws where the file is no whole
 * backup; in a transaction nothing of it is added then.
 */
export async function restoreDataKeys(db: Db, { file }: { file: string }): Promise<RestoredKeys> {
  const lines = createInterface({
    input: createReadStream(file),
    crlfDelay: Number.POSITIVE_INFINITY,
  })
  const restored = { madeAt: 0, rows: 0, added: 0 }
  let page: DataKeyRow[] = []
  let stated: number | undefined
  const put = async () => {
    restored.added += (await insertDataKeys(db, page)).size
    restored.rows += page.length
    page = []
  }
  for await (const line of lines) {
    if (restored.madeAt === 0) restored.madeAt = parse(header, line).made_at
    else if (line.startsWith('{"rows"')) stated = parse(end, line).rows
    else page.push(parse(row, line))
    if (page.length === pageSize) await put()
  }
  await put()
  if (stated !== restored.rows) throw new NoBackup('it ends before its last line')
  return restored
}

/** The file is no backup of data keys, or not all of one. */
export class NoBackup extends Error {
  constructor(why: string) {
    super(`The file is no whole backup of data keys: ${why}.`)
  }
}

function parse<T>(schema: z.ZodType<T>, line: string): T {
  try {
    return schema.parse(JSON.parse(line))
  } catch {
    throw new NoBackup('a line is not as it was written')
  }
}

export interface ResealedKeys {
  resealed: number
  /** No master key of the settings opens them. */
  closed: number
}

/** Seals every key by the current master key, so that older ones can be taken away. */
export async function resealDataKeys(
  db: Db,
  sealing: { keyring: Keyring; random: Random; now: number },
): Promise<ResealedKeys> {
  const { keyring } = sealing
  const done = { resealed: 0, closed: 0 }
  for await (const page of keyPages(db)) {
    const old = page.filter((one) => one.sealed_key?.toString('hex', 0, 4) !== keyring.current.id)
    const opened = old.flatMap((one) => {
      const key = openDataKey(one, keyring)
      return key
        ? [{ ...one, next: sealDataKey(key, { ...sealing, sessionId: one.session_id }) }]
        : []
    })
    done.closed += old.length - opened.length
    done.resealed += opened.length
    await db.query(
      // Not where it was erased meanwhile.
      `update tidegate_keys.session_keys k set sealed_key = changed.next
       from unnest($1::text[], $2::bytea[], $3::bytea[]) as changed (session_id, before, next)
       where k.session_id = changed.session_id and k.sealed_key = changed.before`,
      [
        opened.map((one) => one.session_id),
        opened.map((one) => one.sealed_key),
        opened.map((one) => one.next),
      ],
    )
  }
  return done
}
