import type { Db } from '../../infra/postgres/pool.ts'

export interface PageRow {
  approve_token_hash: string
  issued_at: number
  /** By the database's clock; null while the page is open. */
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
