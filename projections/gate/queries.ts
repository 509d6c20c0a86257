import { createHash } from 'node:crypto'
import { asId, type GateSessionId } from '../../infra/ids.ts'
import { databaseNow } from '../../infra/postgres/lease.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Environment } from '../../schemas/events.ts'
import {
  type AgentTokenRow,
  type GateServiceRow,
  type GateSessionRow,
  gateAgentTokens,
  gateServices,
  gateSessions,
} from './tables.ts'

export interface ServiceScope {
  organizationId: string
  environment: Environment
}

const serviceFields = gateServices.selectWithout('s', 'discoverable', 'webhook_endpoint_id')

export async function findService(db: Db, serviceId: string): Promise<GateServiceRow | undefined> {
  const text = `select ${serviceFields} from read.gate_services s where s.service_id = $1`
  return (await db.query<GateServiceRow>(text, [serviceId])).rows[0]
}

export async function listServices(
  db: Db,
  { organizationId, environment }: ServiceScope,
): Promise<GateServiceRow[]> {
  const { rows } = await db.query<GateServiceRow>(
    `select ${serviceFields} from read.gate_services s
     where s.organization_id = $1 and s.environment = $2 order by s.created_at desc, s.service_id desc`,
    [organizationId, environment],
  )
  return rows
}

export async function countServices(db: Db, organizationId: string): Promise<number> {
  const text = 'select count(*)::int as count from read.gate_services where organization_id = $1'
  return (await db.query<{ count: number }>(text, [organizationId])).rows[0]?.count ?? 0
}

/** Returns the names of active services that the operator has verified for other organizations. */
export async function findVerifiedNamesOfOthers(db: Db, organizationId: string): Promise<string[]> {
  const { rows } = await db.query<Pick<GateServiceRow, 'definition'>>(
    `select ${gateServices.select('s', 'definition')} from read.gate_services s
     where s.verified and s.status = 'active' and s.organization_id <> $1`,
    [organizationId],
  )
  return rows.map(({ definition: { name } }) => name)
}

/** Returns true if the event was applied, that is, the command that would append it is a repeat. */
export async function isServiceEventApplied(db: Db, eventId: string): Promise<boolean> {
  const { rowCount } = await db.query('select from read.gate_applied_events where event_id = $1', [
    eventId,
  ])
  return rowCount === 1
}

const openServicesSql = `read.gate_services s join read.organizations o on o.organization_id = s.organization_id
  where s.status = 'active' and s.discoverable and o.status = 'active'`
// Changes whenever the service's registry entry changes.
const revisionSql = `s.service_id || ' ' || s.verified || ' ' || coalesce(s.verified_domain, '') || ' ' || s.definition_md5`

/** Returns the services that are open for signup: active, discoverable, and owned by an active organization. */
export async function listRegistry(
  db: Db,
): Promise<{ version: string; services: GateServiceRow[] }> {
  const { rows } = await db.query<GateServiceRow & { revision: string }>(
    `select ${serviceFields}, ${revisionSql} as revision from ${openServicesSql} order by s.service_id`,
  )
  const revisions = rows.map(({ revision }) => revision)
  return {
    version: createHash('md5').update(revisions.join()).digest('hex'),
    services: rows.map(({ revision: _, ...service }) => service),
  }
}

/** Returns the version that `listRegistry` would return, without reading the services. */
export async function readRegistryVersion(db: Db): Promise<string> {
  const { rows } = await db.query<{ version: string }>({
    name: 'gate-registry-version',
    text: `select md5(coalesce(string_agg(${revisionSql}, ',' order by s.service_id), '')) as version from ${openServicesSql}`,
  })
  const [row] = rows
  if (!row) throw new Error('the registry has no version')
  return row.version
}

/** Returns ids in use, including disabled services, that equal `serviceId` except for runs of `-` and `_`. */
export async function findSimilarServiceIds(db: Db, serviceId: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select service_id as id from read.gate_services
     where regexp_replace(service_id, '[-_]+', '_', 'g') = regexp_replace($1, '[-_]+', '_', 'g') order by service_id`,
    [serviceId],
  )
  return rows.map(({ id }) => id)
}

/** Returns the ids of active services that send approvals to the webhook endpoint. */
export async function findServiceIdsByEndpoint(db: Db, endpointId: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select service_id as id from read.gate_services
     where webhook_endpoint_id = $1 and status = 'active' order by service_id`,
    [endpointId],
  )
  return rows.map(({ id }) => id)
}

export async function findGateSession(
  db: Db,
  gateSessionId: string,
): Promise<GateSessionRow | undefined> {
  const { rows } = await db.query<GateSessionRow>({
    name: 'find-gate-session',
    text: `select ${gateSessions.select('s')} from read.gate_sessions s where s.gate_session_id = $1`,
    values: [gateSessionId],
  })
  return rows[0]
}

export async function findLoginByCode(
  db: Db,
  hashes: string[],
): Promise<GateSessionRow | undefined> {
  const text = `select ${gateSessions.select('s')} from read.gate_sessions s where s.code_hash = any($1)`
  return (await db.query<GateSessionRow>(text, [hashes])).rows[0]
}

/** Gate session to erase. `proof_session_id` is the consent page's session that approved it. */
export type ErasableSession = Pick<
  GateSessionRow,
  'id' | 'organization_id' | 'environment' | 'gate_account_id' | 'proof_session_id' | 'is_erased'
>

const erasableColumns =
  's.gate_session_id as id, s.organization_id, s.environment, s.gate_account_id, s.proof_session_id, s.is_erased'

/** Returns the signup and all logins of an account, or a single session. */
export async function findErasableSessions(
  db: Db,
  ids: { gateAccountId: string } | { gateSessionId: string },
): Promise<ErasableSession[]> {
  const [column, id] =
    'gateAccountId' in ids
      ? ['gate_account_id', ids.gateAccountId]
      : ['gate_session_id', ids.gateSessionId]
  const { rows } = await db.query<ErasableSession>(
    `select ${erasableColumns} from read.gate_sessions s where s.${column} = $1 order by s.gate_session_id`,
    [id],
  )
  return rows
}

/** Returns sessions that ended before a time, oldest first, except signups whose agent token was still valid then. */
export async function findSessionsEndedBefore(
  db: Db,
  before: number,
  limit: number,
): Promise<ErasableSession[]> {
  const { rows } = await db.query<ErasableSession>(
    `select ${erasableColumns} from read.gate_sessions s
     where not s.is_erased and s.expires_at < $1 and s.status <> 'pending' and s.delivery is distinct from 'waiting'
       and not exists (select from read.gate_agent_tokens t where t.gate_account_id = s.gate_account_id
         and t.gate_session_id = s.gate_session_id and t.status = 'active' and t.expires_at >= $1)
     order by s.expires_at, s.gate_session_id limit $2`,
    [before, limit],
  )
  return rows
}

const dueConditions = {
  sessions: { where: `status = 'pending' and approval_started_at is null`, at: 'expires_at' },
  deliveries: { where: `delivery = 'waiting'`, at: 'delivery_expires_at' },
  codes: { where: `code = 'issued'`, at: 'code_expires_at' },
} as const

/** Returns overdue sessions in random order, so that those of a stuck partition don't block the others. */
export async function findDueGateSessions(
  db: Db,
  kind: keyof typeof dueConditions,
  { now, limit }: { now: number; limit: number },
): Promise<GateSessionId[]> {
  const { where, at } = dueConditions[kind]
  const { rows } = await db.query<{ id: string }>(
    `select gate_session_id as id from read.gate_sessions where ${where} and ${at} <= $1
     order by random() limit $2`,
    [now, limit],
  )
  return rows.map(({ id }) => asId('gate', id))
}

/**
 * Returns approved signups that wait for their service and that no process has leased. Round-robin by organization,
 * oldest first.
 */
export async function findUnleasedApprovals(
  db: Db,
  { maxPerOrganization, limit }: { maxPerOrganization: number; limit: number },
): Promise<Pick<GateSessionRow, 'id' | 'organization_id'>[]> {
  const { rows } = await db.query<Pick<GateSessionRow, 'id' | 'organization_id'>>(
    `select id, organization_id from (
       select s.gate_session_id as id, s.organization_id, s.approval_started_at,
         row_number() over (
           partition by s.organization_id order by s.approval_started_at, s.gate_session_id) as turn
       from read.gate_sessions s
       where s.status = 'pending' and s.approval_started_at is not null and not exists (
         select from tidegate.gate_leases l where l.gate_session_id = s.gate_session_id
           and l.expires_at > ${databaseNow})) as free
     where turn <= $1 order by turn, approval_started_at, id limit $2`,
    [maxPerOrganization, limit],
  )
  return rows
}

export async function findAgentToken(db: Db, hashes: string[]): Promise<AgentTokenRow | undefined> {
  const { rows } = await db.query<AgentTokenRow>({
    name: 'find-agent-token',
    text: `select ${gateAgentTokens.select('t')} from read.gate_agent_tokens t where t.token_hash = any($1)`,
    values: [hashes],
  })
  return rows[0]
}

export async function findTokenOfAccount(
  db: Db,
  gateAccountId: string,
): Promise<AgentTokenRow | undefined> {
  const text = `select ${gateAgentTokens.select('t')} from read.gate_agent_tokens t where t.gate_account_id = $1`
  return (await db.query<AgentTokenRow>(text, [gateAccountId])).rows[0]
}
