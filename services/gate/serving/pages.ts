import type { Keyring } from '../../../infra/crypto/keyring.ts'
import { generateToken, type Token, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { asId, type Clock, type GateSessionId, type Random } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'

export interface PagesOptions {
  pool: Db
  keyring: Keyring
  clock: Clock
  random: Random
}

/** Consent pages that are open: which approve token each has, and since when one is closing. */
export interface Pages {
  /** A new approve token for the page; those before it are void, and the page is not closing any more. */
  open(gateSessionId: GateSessionId): Promise<Token<'gtapr'>>
  /**
   * The page says that it is being closed. It may be a reload: then `open` follows, or came before, so that the token
   * which the page says it has is not the newest one any more.
   */
  close(gateSessionId: GateSessionId, token?: Token<'gtapr'>): Promise<void>
}

/** Epoch milliseconds. A few seconds count here, and the clocks of two processes may differ by as many. */
const databaseNow = '(extract(epoch from statement_timestamp()) * 1000)::bigint'

export function createPages({ pool, keyring, clock, random }: PagesOptions): Pages {
  return {
    async open(gateSessionId) {
      const token = generateToken('gtapr', random)
      await pool.query(
        `insert into tidegate.gate_pages values ($1, $2, $3)
         on conflict (gate_session_id) do update
         set approve_token_hash = excluded.approve_token_hash, issued_at = excluded.issued_at, closed_at = null`,
        [gateSessionId, tokenHashes(keyring, token)[0], clock()],
      )
      return token
    },
    async close(gateSessionId, token) {
      await pool.query(
        `update tidegate.gate_pages set closed_at = coalesce(closed_at, ${databaseNow})
         where gate_session_id = $1 and ($2::text[] is null or approve_token_hash = any($2))`,
        [gateSessionId, token ? tokenHashes(keyring, token) : null],
      )
    },
  }
}

/** A page as it is stored. Times are epoch milliseconds. */
export interface PageRow {
  /** Of the newest token. */
  approve_token_hash: string
  issued_at: number
  /** Since when it is closing, by the database's clock; null while it is open. */
  closed_at: number | null
}

/** undefined until the page was opened for the first time. */
export async function findPage(db: Db, gateSessionId: string): Promise<PageRow | undefined> {
  const { rows } = await db.query<PageRow>(
    `select approve_token_hash, issued_at::float8, closed_at::float8 from tidegate.gate_pages
     where gate_session_id = $1`,
    [gateSessionId],
  )
  return rows[0]
}

/** For how many milliseconds the page has been closing; null while it is open, and before it was. */
export async function closingFor(db: Db, gateSessionId: string): Promise<number | null> {
  const { rows } = await db.query<{ ms: number | null }>(
    `select (${databaseNow} - closed_at)::float8 as ms from tidegate.gate_pages where gate_session_id = $1`,
    [gateSessionId],
  )
  return rows[0]?.ms ?? null
}

interface LongClosing {
  /** So long at least, in milliseconds. */
  forMs: number
  /** Epoch milliseconds. */
  now: number
  limit: number
  /** Sessions to leave out. */
  except: string[]
}

/** The sessions that nobody has decided about and whose page has been closing for so long, longest first. */
export async function longClosing(
  db: Db,
  { forMs, now, limit, except }: LongClosing,
): Promise<GateSessionId[]> {
  const { rows } = await db.query<{ id: string }>(
    `select p.gate_session_id as id
     from tidegate.gate_pages p join read.gate_sessions s using (gate_session_id)
     where p.closed_at <= ${databaseNow} - $1 and p.gate_session_id <> all($4)
       and s.status = 'pending' and s.approval_started_at is null and s.expires_at > $2
     order by p.closed_at, p.gate_session_id limit $3`,
    [forMs, now, limit, except],
  )
  return rows.map(({ id }) => asId('gate', id))
}
