import { generateToken, type Token, tokenHashes } from '../../infra/crypto/tokens.ts'
import { asId, type GateSessionId } from '../../infra/ids.ts'
import { databaseNow, leaseColumns } from '../../infra/postgres/lease.ts'
import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { column, constrained, nullable, primaryKey, table } from '../../infra/postgres/table.ts'
import { type StoreOptions, vaultDdl } from './vault.ts'

// Gate's tables that cannot be rebuilt from the log, and the effect of losing a row:
//   gate_approve_tokens: the person must reload the consent page.
//   gate_pages: a closed page does not reject its session.
//   gate_leases: another process resumes the approval.
//   gate_vault: the credentials are lost, so the agent must sign up again.
//   gate_limits: a rate limit starts over.

const pages = table(
  'tidegate.gate_pages',
  {
    gate_session_id: primaryKey(column.id()),
    approve_token_hash: column.text(),
    issued_at: column.bigint(),
    closed_at: nullable(column.bigint()),
  },
  { indexes: ['(closed_at) where closed_at is not null', '(issued_at)'] },
)

const approveTokens = table(
  'tidegate.gate_approve_tokens',
  {
    approve_token_hash: primaryKey(column.id()),
    gate_session_id: column.id(),
    issued_at: column.bigint(),
  },
  { indexes: ['(issued_at)'] },
)

const leases = table('tidegate.gate_leases', {
  gate_session_id: primaryKey(column.id()),
  ...leaseColumns,
})

const limits = table(
  'tidegate.gate_limits',
  {
    key: primaryKey(column.text()),
    points: constrained(column.integer(), 'default 0'),
    expire: nullable(column.bigint()),
  },
  { unlogged: true, indexes: ['(expire)'] },
)

export const gateMigrations: Migrations = {
  name: 'gate',
  create: vaultDdl + ddlOf(pages, approveTokens, leases, limits),
}

export type Pages = ReturnType<typeof createPages>

export function createPages({ pool, keyring, clock, random }: StoreOptions) {
  return {
    /** Issues another approve token, and marks the page as open. */
    async issueApproveToken(gateSessionId: GateSessionId): Promise<Token<'gtapr'>> {
      const token = generateToken('gtapr', random)
      await pool.query(
        `with token as (insert into tidegate.gate_approve_tokens values ($2, $1, $3))
         insert into tidegate.gate_pages values ($1, $2, $3)
         on conflict (gate_session_id) do update
         set approve_token_hash = excluded.approve_token_hash, issued_at = excluded.issued_at, closed_at = null`,
        [gateSessionId, tokenHashes(keyring, token)[0], clock()],
      )
      return token
    },
    /** Marks the page as closed. Ignores a `token` that is not the newest, because a reload has reopened the page. */
    async markClosed(gateSessionId: GateSessionId, token?: Token<'gtapr'>): Promise<void> {
      await pool.query(
        `update tidegate.gate_pages set closed_at = coalesce(closed_at, ${databaseNow})
         where gate_session_id = $1 and ($2::text[] is null or approve_token_hash = any($2))`,
        [gateSessionId, token ? tokenHashes(keyring, token) : null],
      )
    },
  }
}

/** Returns true if the session's page was issued an approve token with one of the hashes. */
export async function isApproveTokenOf(
  db: Db,
  gateSessionId: string,
  hashes: string[],
): Promise<boolean> {
  const { rowCount } = await db.query(
    'select from tidegate.gate_approve_tokens where approve_token_hash = any($2) and gate_session_id = $1',
    [gateSessionId, hashes],
  )
  return rowCount !== 0
}

/** Returns how long the page has been closed; null while it is open. */
export async function pageClosedForMs(db: Db, gateSessionId: string): Promise<number | null> {
  const { rows } = await db.query<{ ms: number | null }>(
    `select (${databaseNow} - closed_at)::float8 as ms from tidegate.gate_pages where gate_session_id = $1`,
    [gateSessionId],
  )
  return rows[0]?.ms ?? null
}

/** Returns pending sessions whose page has been closed for at least `minClosedMs`, in random order. */
export async function findSessionsWithClosedPage(
  db: Db,
  { minClosedMs, now, limit }: { minClosedMs: number; now: number; limit: number },
): Promise<GateSessionId[]> {
  const { rows } = await db.query<{ id: string }>(
    `select p.gate_session_id as id
     from tidegate.gate_pages p join read.gate_sessions s using (gate_session_id)
     where p.closed_at <= ${databaseNow} - $1
       and s.status = 'pending' and s.approval_started_at is null
       and s.claim is distinct from 'waiting' and s.expires_at > $2
     order by random() limit $3`,
    [minClosedMs, now, limit],
  )
  return rows.map(({ id }) => asId('gate', id))
}
