import type pg from 'pg'
import type { Logger } from 'pino'
import type { Clock } from '../ids.ts'
import { unnest } from '../postgres/arrays.ts'
import { ensureTables } from '../postgres/ensure-tables.ts'
import type { Db, Tx } from '../postgres/pool.ts'

export interface KeyUsageOptions {
  pool: pg.Pool
  clock: Clock
  logger: Logger
  /** From the first key noted to the write of all that came with it (default 1000). */
  lingerMs?: number
}

export interface KeyUsage {
  /** The key was used now. Costs nothing where it has been noted within the last minute. */
  note(keyId: string): void
  /** Writes what is noted; never rejects. What could not be written is tried again later. */
  flush(): Promise<void>
  /** Writes what is noted and forgets what comes later. */
  close(): Promise<void>
}

const noteEveryMs = 60_000
const retryMs = 10_000

const ddl = `
create table if not exists tidegate.api_key_usage (
  key_id text collate "C" primary key,
  last_used_at bigint not null
);
`

/**
 * The table of last uses. It is operational state and no read model: nothing decides by it, it is in no event, and
 * to lose it only means that `last_used_at` starts again.
 */
export function createKeyUsageTables(tx: Tx): Promise<void> {
  return ensureTables(tx, { name: 'key-usage', table: 'tidegate.api_key_usage', ddl })
}

/** Remembers when keys were last used, at the cost of at most one write a minute for each key and process. */
export function createKeyUsage({ pool, clock, logger, lingerMs = 1000 }: KeyUsageOptions): KeyUsage {
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
    forgetOld(notedAt, clock() - noteEveryMs)
    try {
      await write(pool, uses)
    } catch (err) {
      logger.debug({ err }, 'uses of API keys not written')
      for (const [keyId, at] of uses) pending.set(keyId, Math.max(at, pending.get(keyId) ?? at))
      flushIn(retryMs)
    }
  }

  return {
    note(keyId) {
      const now = clock()
      const last = notedAt.get(keyId)
      if (closed || (last !== undefined && Math.abs(now - last) < noteEveryMs)) return
      notedAt.set(keyId, now)
      pending.set(keyId, now)
      flushIn(lingerMs)
    },
    flush,
    close() {
      closed = true
      return flush()
    },
  }
}

/** Keys that have not been used for a minute need not be remembered for the next one. */
function forgetOld(notedAt: Map<string, number>, before: number): void {
  for (const [keyId, at] of notedAt) if (at <= before) notedAt.delete(keyId)
}

type Use = [keyId: string, lastUsedAt: number]

async function write(pool: pg.Pool, uses: Use[]): Promise<void> {
  // In one order in every process: two that lock the same rows in different orders would wait for each other.
  const rows = uses.toSorted(([a], [b]) => (a < b ? -1 : 1))
  const { names, source, values } = unnest<Use>(
    [
      { name: 'key_id', type: 'text', of: ([keyId]) => keyId },
      { name: 'last_used_at', type: 'bigint', of: ([, at]) => at },
    ],
    rows,
  )
  await pool.query(
    `insert into tidegate.api_key_usage (${names}) select * from ${source}
     on conflict (key_id) do update set last_used_at = excluded.last_used_at
     where api_key_usage.last_used_at < excluded.last_used_at`,
    values,
  )
}

/** When the keys were last used, in epoch milliseconds and up to a minute late; keys never used are left out. */
export async function lastUsedAt(db: Db, keyIds: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await db.query<{ id: string; at: number }>({
    name: 'key-usage',
    text: `select key_id as id, last_used_at::float8 as at from tidegate.api_key_usage where key_id = any($1)`,
    values: [keyIds],
  })
  return new Map(rows.map(({ id, at }) => [id, at]))
}
