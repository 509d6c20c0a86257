import { asId, type GateSessionId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { sessionFields } from './records.ts'
import type { GateSessionRow } from './rows.ts'

/** The signup or login of the id. */
export async function findGateSession(db: Db, gateSessionId: string): Promise<GateSessionRow | undefined> {
  const { rows } = await db.query<GateSessionRow>({
    name: 'find-gate-session',
    text: `select ${sessionFields('s')} from read.gate_sessions s where s.gate_session_id = $1`,
    values: [gateSessionId],
  })
  return rows[0]
}

/** The login whose code has one of the hashes. */
export async function findLoginByCode(db: Db, hashes: string[]): Promise<GateSessionRow | undefined> {
  const { rows } = await db.query<GateSessionRow>(
    `select ${sessionFields('s')} from read.gate_sessions s where s.code_hash = any($1)`,
    [hashes],
  )
  return rows[0]
}

interface Due {
  /** Epoch milliseconds. */
  now: number
  /** Ids at most. */
  limit: number
  /** Ids to leave out. */
  except?: string[]
}

const dueBy = {
  /** Pending past their time, with no approval that would end them. */
  sessions: { where: `status = 'pending' and approval_started_at is null`, at: 'expires_at' },
  /** Not acknowledged within theirs. */
  deliveries: { where: `delivery = 'waiting'`, at: 'delivery_expires_at' },
  /** Not used within theirs. */
  codes: { where: `code = 'issued'`, at: 'code_expires_at' },
} as const

/** The sessions of which something is past its time, longest ago first. */
export async function dueGateSessions(
  db: Db,
  what: keyof typeof dueBy,
  { now, limit, except = [] }: Due,
): Promise<GateSessionId[]> {
  const { where, at } = dueBy[what]
  const { rows } = await db.query<{ id: string }>(
    `select gate_session_id as id from read.gate_sessions where ${where} and ${at} <= $1 and gate_session_id <> all($3)
     order by ${at}, gate_session_id limit $2`,
    [now, limit, except],
  )
  return rows.map(({ id }) => asId('gate', id))
}

interface Free {
  /** Approvals of one organization at most. */
  each: number
  /** In all. */
  limit: number
}

/**
 * The signups that a person approved, whose service has not answered yet and that no process works on. Organizations
 * take turns, so that one with many does not keep others out; of each the longest waiting first.
 */
export async function startedApprovals(
  db: Db,
  { each, limit }: Free,
): Promise<Pick<GateSessionRow, 'id' | 'organization_id'>[]> {
  const { rows } = await db.query<Pick<GateSessionRow, 'id' | 'organization_id'>>(
    `select id, organization_id from (
       select s.gate_session_id as id, s.organization_id, s.approval_started_at,
         row_number() over (
           partition by s.organization_id order by s.approval_started_at, s.gate_session_id) as turn
       from read.gate_sessions s
       where s.status = 'pending' and s.approval_started_at is not null and not exists (
         select from tidegate.gate_leases l where l.gate_session_id = s.gate_session_id
           and l.leased_until > extract(epoch from clock_timestamp()) * 1000)) as free
     where turn <= $1 order by turn, approval_started_at, id limit $2`,
    [each, limit],
  )
  return rows
}
