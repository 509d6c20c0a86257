import type { GateAccountId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { ServiceScope } from './queries.ts'
import { type AgentTokenRow, gateSessions } from './tables.ts'

/** Account that a service created for an agent. Its token is null if the service has no dashboard. */
export interface AgentAccount {
  id: GateAccountId
  service_id: string
  /** Empty once it is erased. */
  account_name: string
  created_at: number
  token_status: AgentTokenRow['status'] | null
  token_expires_at: number | null
}

interface AccountPage {
  limit: number
  after: { createdAt: number; id: string } | undefined
}

const accountsSql = `
  select s.gate_account_id as id, s.service_id, ${gateSessions.select('s', 'account_name')},
    s.resolved_at::float8 as created_at, t.status as token_status, t.expires_at::float8 as token_expires_at
  from read.gate_sessions s left join read.gate_agent_tokens t using (gate_account_id)
  where s.organization_id = $1 and s.environment = $2 and s.kind = 'signup' and s.status = 'approved'`

/** Returns the accounts, newest first. */
export async function listAgentAccounts(
  db: Db,
  { organizationId, environment }: ServiceScope,
  { limit, after }: AccountPage,
): Promise<{ rows: AgentAccount[]; hasMore: boolean }> {
  const values: unknown[] = [organizationId, environment, limit + 1]
  if (after) values.push(after.createdAt, after.id)
  const { rows } = await db.query<AgentAccount>(
    `${accountsSql} ${after ? 'and (s.resolved_at, s.gate_account_id) < ($4, $5)' : ''}
     order by s.resolved_at desc, s.gate_account_id desc limit $3`,
    values,
  )
  return { rows: rows.slice(0, limit), hasMore: rows.length > limit }
}

export async function findAgentAccount(
  db: Db,
  { organizationId, environment }: ServiceScope,
  gateAccountId: string,
): Promise<AgentAccount | undefined> {
  const text = `${accountsSql} and s.gate_account_id = $3`
  const { rows } = await db.query<AgentAccount>(text, [organizationId, environment, gateAccountId])
  return rows[0]
}

/** Signups of a service, by outcome. Each is in one of the counts after `delivered`, or was created. */
interface SignupCounts {
  service_id: string
  started: number
  /** Approved by a person. */
  approved: number
  /** Got an account at the service. */
  created: number
  /** The agent acknowledged the credentials. */
  delivered: number
  pending: number
  declined: number
  closed: number
  claim_failed: number
  integrator_failed: number
  expired: number
}

const outcomes: Record<Exclude<keyof SignupCounts, 'service_id'>, string> = {
  started: 'true',
  approved: 'n.approve_token_hash is not null',
  created: `n.status = 'approved'`,
  delivered: `n.delivery = 'acknowledged'`,
  pending: `n.status = 'pending'`,
  declined: `n.rejection = 'declined'`,
  closed: `n.rejection = 'closed'`,
  claim_failed: `n.rejection = 'claim_failed'`,
  integrator_failed: `n.rejection = 'integrator_failed'`,
  expired: `n.status = 'expired'`,
}
const countColumns = Object.entries(outcomes).map(
  ([name, condition]) => `count(n.gate_session_id) filter (where ${condition})::int as ${name}`,
)

interface SignupPeriod {
  since: number
  until: number
  /** Only so many of the newest signups are counted. */
  max: number
}

/** Counts the signups that started in the period, for each service. `earliest` is the first that was counted. */
export async function countSignups(
  db: Db,
  { organizationId, environment }: ServiceScope,
  { since, until, max }: SignupPeriod,
): Promise<{ services: SignupCounts[]; earliest: number | null }> {
  const { rows } = await db.query<SignupCounts & { earliest: number | null }>(
    `with newest as materialized (
       select gate_session_id, service_id, status, rejection, approve_token_hash, delivery, opened_at
       from read.gate_sessions
       where organization_id = $1 and environment = $2 and kind = 'signup' and opened_at >= $3 and opened_at < $4
       order by opened_at desc limit $5)
     select s.service_id, ${countColumns.join(', ')}, (select min(opened_at)::float8 from newest) as earliest
     from read.gate_services s left join newest n using (service_id)
     where s.organization_id = $1 and s.environment = $2
     group by s.service_id, s.created_at order by s.created_at desc, s.service_id desc`,
    [organizationId, environment, since, until, max],
  )
  const services = rows.map(({ earliest: _, ...counts }) => counts)
  return { services, earliest: rows[0]?.earliest ?? null }
}
