import type pg from 'pg'
import type { Logger } from 'pino'
import type { Clock } from '../ids.ts'
import { runTogether } from '../postgres/arrays.ts'
import { ddlOf, type Migrations } from '../postgres/migrations.ts'
import type { Db } from '../postgres/pool.ts'
import { column, primaryKey, table, writeRows } from '../postgres/table.ts'

const noteEveryMs = 60_000
const retryMs = 10_000

const keyUsage = table('tidegate.api_key_usage', {
  key_id: primaryKey(column.id()),
  last_used_at: column.bigint(),
})

/**
 * Last uses are operational state and no read model: nothing is decided by them, and they are in no event. To lose
 * them only means that `last_used_at` starts again.
 */
export const keyUsageMigrations: Migrations = { name: 'key-usage', create: ddlOf(keyUsage) }

/** All uses that are noted within `lingerMs` (milliseconds) are written together. */
export function createKeyUsage({
  pool,
  clock,
  logger,
  lingerMs = 1000,
}: {
  pool: pg.Pool
  clock: Clock
  logger: Logger
  lingerMs?: number
}) {
  const notedAt = new Map<string, number>()
  const pending = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let writing = Promise.resolve()
  let closed = false

  function flushIn(ms: number): void {
    if (timer || closed) return
    timer = setTimeout(() => void flush(), ms)
    timer.unref()
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    writing = writing.then(writePending)
    return writing
  }

  async function writePending(): Promise<void> {
    const uses = [...pending]
    if (uses.length === 0) return
    pending.clear()
    const old = clock() - noteEveryMs
    for (const [keyId, at] of notedAt) if (at <= old) notedAt.delete(keyId)
    try {
      await write(pool, uses)
    } catch (err) {
      logger.debug({ err }, 'uses of API keys not written')
      for (const [keyId, at] of uses) pending.set(keyId, Math.max(at, pending.get(keyId) ?? at))
      flushIn(retryMs)
    }
  }

  return {
    /** Costs nothing where the key was noted within the last minute. */
    note(keyId: string): void {
      const now = clock()
      const last = notedAt.get(keyId)
      if (closed || (last !== undefined && Math.abs(now - last) < noteEveryMs)) return
      notedAt.set(keyId, now)
      pending.set(keyId, now)
      flushIn(lingerMs)
    },
    flush,
    close(): Promise<void> {
      closed = true
      return flush()
    },
  }
}

async function write(pool: pg.Pool, uses: [keyId: string, lastUsedAt: number][]): Promise<void> {
  const written = writeRows(keyUsage, {
    as: 'note_key_usage',
    columns: keyUsage.columns,
    rows: uses.map(([key_id, last_used_at]) => ({ key_id, last_used_at })),
    ordered: true,
    conflict: `on conflict (key_id) do update set last_used_at = excluded.last_used_at
      where api_key_usage.last_used_at < excluded.last_used_at`,
  })
  await runTogether(pool, written)
}

/** Epoch milliseconds by key, up to a minute late. Keys never used are left out. */
export async function lastUsedAt(db: Db, keyIds: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await db.query<{ id: string; at: number }>({
    name: 'key-usage',
    text: `select key_id as id, last_used_at::float8 as at from tidegate.api_key_usage where key_id = any($1)`,
    values: [keyIds],
  })
  return new Map(rows.map(({ id, at }) => [id, at]))
}
