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
  /**
   * Milliseconds from the first note to the write (default 1000). All notes that come meanwhile are written with it.
   */
  lingerMs?: number
}

export interface KeyUsage {
  /** Costs nothing where the key was noted within the last minute. */
  note(keyId: string): void
  flush(): Promise<void>
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
 * Last uses are operational state and no read model: nothing is decided by them, and they are in no event. To lose
 * them only means that `last_used_at` starts again.
 */
export function createKeyUsageTables(tx: Tx): Promise<void> {
  return ensureTables(tx, { name: 'key-usage', table: 'tidegate.api_key_usage', ddl })
}

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

/** Epoch milliseconds by key, up to a minute late. Keys never used are left out. */
export async function lastUsedAt(db: Db, keyIds: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await db.query<{ id: string; at: number }>({
    name: 'key-usage',
    text: `select key_id as id, last_used_at::float8 as at from tidegate.api_key_usage where key_id = any($1)`,
    values: [keyIds],
  })
  return new Map(rows.map(({ id, at }) => [id, at]))
}
