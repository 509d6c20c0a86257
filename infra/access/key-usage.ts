import type pg from 'pg'
import type { Logger } from 'pino'
import type { Clock } from '../ids.ts'
import { runAsOneStatement } from '../postgres/arrays.ts'
import { ddlOf, type Migrations } from '../postgres/migrations.ts'
import type { Db } from '../postgres/pool.ts'
import { column, primaryKey, table, writeRows } from '../postgres/table.ts'

const recordEveryMs = 60_000
const retryMs = 10_000

const keyUsage = table('tidegate.api_key_usage', {
  key_id: primaryKey(column.id()),
  last_used_at: column.bigint(),
})

/**
 * Last-used times are operational state, not a read model: no decision and no event uses them. Losing the table only
 * resets `last_used_at`.
 */
export const keyUsageMigrations: Migrations = { name: 'key-usage', create: ddlOf(keyUsage) }

/** Creates a write-behind buffer of last-used times: uses within `lingerMs` are written in one statement. */
export function createKeyUsageBuffer({
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
  const recordedAt = new Map<string, number>()
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
    const expired = clock() - recordEveryMs
    for (const [keyId, at] of recordedAt) if (at <= expired) recordedAt.delete(keyId)
    try {
      await write(pool, uses)
    } catch (err) {
      logger.debug({ err }, 'failed to store API key usage')
      for (const [keyId, at] of uses) pending.set(keyId, Math.max(at, pending.get(keyId) ?? at))
      flushIn(retryMs)
    }
  }

  return {
    /** Records a use. Ignored if the key's last recorded use is less than a minute old. */
    recordUse(keyId: string): void {
      const now = clock()
      const last = recordedAt.get(keyId)
      if (closed || (last !== undefined && Math.abs(now - last) < recordEveryMs)) return
      recordedAt.set(keyId, now)
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
  await runAsOneStatement(pool, written)
}

/** Returns last uses by key id, in epoch milliseconds and up to a minute late. Omits keys that were never used. */
export async function loadLastUses(db: Db, ids: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await db.query<{ id: string; at: number }>({
    name: 'key-usage',
    text: `select key_id as id, last_used_at::float8 as at from tidegate.api_key_usage where key_id = any($1)`,
    values: [ids],
  })
  return new Map(rows.map(({ id, at }) => [id, at]))
}
