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
const keyLine = z.object({
  session_id: z.string(),
  made_at: z.number(),
  sealed_key: z.base64().transform((text) => Buffer.from(text, 'base64')),
})
const trailerLine = z.object({ rows: z.number() })

/**
 * Writes a backup of the data keys, still sealed by their master keys, as JSON lines: a header with the time, a line
 * per key, and a trailer with the count. Returns the count. Throws EEXIST rather than overwrite a file.
 */
export async function backUpDataKeys(
  db: Db,
  { file, now }: { file: string; now: number },
): Promise<number> {
  await using target = await open(file, 'wx', 0o600)
  const append = (objects: object[]) =>
    target.appendFile(objects.map((object) => `${JSON.stringify(object)}\n`).join(''))
  await append([{ format, version: 1, made_at: now }])
  let rows = 0
  for await (const page of keyPages(db)) {
    rows += page.length
    await append(page.map((key) => ({ ...key, sealed_key: key.sealed_key?.toString('base64') })))
  }
  await append([{ rows }])
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
  /** Time of the backup, epoch milliseconds. */
  madeAt: number
  rows: number
  /** Number of keys added, without sessions that had a key already or were erased. */
  added: number
}

/**
 * Adds the keys of a backup, except for sessions that have a key or were erased. Throws InvalidBackup if the file is
 * truncated or corrupted; run it in a transaction, because some keys may have been added by then.
 */
export async function restoreDataKeys(db: Db, { file }: { file: string }): Promise<RestoredKeys> {
  const lines = createInterface({
    input: createReadStream(file),
    crlfDelay: Number.POSITIVE_INFINITY,
  })
  const restored = { madeAt: 0, rows: 0, added: 0 }
  let page: DataKeyRow[] = []
  let expectedRows: number | undefined
  const flush = async () => {
    restored.added += (await insertDataKeys(db, page)).size
    restored.rows += page.length
    page = []
  }
  for await (const line of lines) {
    if (restored.madeAt === 0) restored.madeAt = parse(header, line).made_at
    else if (line.startsWith('{"rows"')) expectedRows = parse(trailerLine, line).rows
    else page.push(parse(keyLine, line))
    if (page.length === pageSize) await flush()
  }
  await flush()
  if (expectedRows !== restored.rows) throw new InvalidBackup('it is truncated')
  return restored
}

/** Thrown if a file is not a complete backup of data keys. */
export class InvalidBackup extends Error {
  constructor(why: string) {
    super(`The file is not a complete backup of data keys: ${why}.`)
  }
}

function parse<T>(schema: z.ZodType<T>, line: string): T {
  try {
    return schema.parse(JSON.parse(line))
  } catch {
    throw new InvalidBackup('a line is corrupted')
  }
}

export interface ResealedKeys {
  resealed: number
  /** Number of keys that none of the configured master keys can decrypt. */
  closed: number
}

/** Re-encrypts every data key with the current master key, so that older master keys can be removed. */
export async function resealDataKeys(
  db: Db,
  sealing: { keyring: Keyring; random: Random; now: number },
): Promise<ResealedKeys> {
  const { keyring } = sealing
  const counts = { resealed: 0, closed: 0 }
  for await (const page of keyPages(db)) {
    const old = page.filter((row) => row.sealed_key?.toString('hex', 0, 4) !== keyring.current.id)
    const resealed = old.flatMap((row) => {
      const key = openDataKey(row, keyring)
      return key
        ? [{ ...row, next: sealDataKey(key, { ...sealing, sessionId: row.session_id }) }]
        : []
    })
    counts.closed += old.length - resealed.length
    counts.resealed += resealed.length
    await db.query(
      // Leaves keys alone that were erased in the meantime.
      `update tidegate_keys.session_keys k set sealed_key = changed.next
       from unnest($1::text[], $2::bytea[], $3::bytea[]) as changed (session_id, before, next)
       where k.session_id = changed.session_id and k.sealed_key = changed.before`,
      [
        resealed.map((row) => row.session_id),
        resealed.map((row) => row.sealed_key),
        resealed.map((row) => row.next),
      ],
    )
  }
  return counts
}
