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

/** The names of the services of other organizations that the operator has verified. */
export async function verifiedNames(db: Db, organizationId: string): Promise<string[]> {
  const { rows } = await db.query<Pick<GateServiceRow, 'definition'>>(
    `select ${gateServices.select('s', 'definition')} from read.gate_services s
     where s.verified and s.status = 'active' and s.organization_id <> $1`,
    [organizationId],
  )
  return rows.map(({ definition: { name } }) => name)
}

/** Whether the event has been applied. A command that makes it again is a repetition. */
export async function isServiceEventApplied(db: Db, eventId: string): Promise<boolean> {
  const { rowCount } = await db.query('select from read.gate_applied_events where event_id = $1', [
    eventId,
  ])
  return rowCount === 1
}

const open = `read.gate_services s join read.organizations o on o.organization_id = s.organization_id
  where s.status = 'active' and s.discoverable and o.status = 'active'`
// Changes with what the registry says of the service.
const mark = `s.service_id || ' ' || s.verified || ' ' || coalesce(s.verified_domain, '') || ' ' || s.definition_md5`

/** The services that anyone may sign up for, by id: active, discoverable, and of an active organization. */
export async function listRegistry(
  db: Db,
): Promise<{ version: string; services: GateServiceRow[] }> {
  const { rows } = await db.query<GateServiceRow & { mark: string }>(
    `select ${serviceFields}, ${mark} as mark from ${open} order by s.service_id`,
  )
  const marks = rows.map(({ mark }) => mark)
  return {
    version: createHash('md5').update(marks.join()).digest('hex'),
    services: rows.map(({ mark: _, ...service }) => service),
  }
}

export async function registryVersion(db: Db): Promise<string> {
  const { rows } = await db.query<{ version: string }>({
    name: 'gate-registry-version',
    text: `select md5(coalesce(string_agg(${mark}, ',' order by s.service_id), '')) as version from ${open}`,
  })
  const [row] = rows
  if (!row) throw new Error('the registry has no version')
  return row.version
}

/** The ids in use that differ from this one in runs of `-` and `_` at most, disabled services too. */
export async function findIdsAlike(db: Db, serviceId: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select service_id as id from read.gate_services
     where regexp_replace(service_id, '[-_]+', '_', 'g') = regexp_replace($1, '[-_]+', '_', 'g') order by service_id`,
    [serviceId],
  )
  return rows.map(({ id }) => id)
}

/** The ids of the active services whose approvals go to this webhook endpoint. */
export async function activeServicesAt(db: Db, endpointId: string): Promise<string[]> {
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

/** A Gate session that can be erased, and the consent page's session that approved it. */
export type ErasableSession = Pick<
  GateSessionRow,
  'id' | 'organization_id' | 'environment' | 'gate_account_id' | 'proof_session_id' | 'is_erased'
>

const erasable =
  's.gate_session_id as id, s.organization_id, s.environment, s.gate_account_id, s.proof_session_id, s.is_erased'

/** The signup of an account with all of its logins, or one session. */
export async function erasableSessions(
  db: Db,
  of: { gateAccountId: string } | { gateSessionId: string },
): Promise<ErasableSession[]> {
  const [column, id] =
    'gateAccountId' in of
      ? ['gate_account_id', of.gateAccountId]
      : ['gate_session_id', of.gateSessionId]
  const { rows } = await db.query<ErasableSession>(
    `select ${erasable} from read.gate_sessions s where s.${column} = $1 order by s.gate_session_id`,
    [id],
  )
  return rows
}

/**
 * Sessions that ended before the time, longest ago first; a signup whose agent token has been usable since is not among
 * them.
 */
export async function agedSessions(
  db: Db,
  before: number,
  limit: number,
): Promise<ErasableSession[]> {
  const { rows } = await db.query<ErasableSession>(
    `select ${erasable} from read.gate_sessions s
     where not s.is_erased and s.expires_at < $1 and s.status <> 'pending' and s.delivery is distinct from 'waiting'
       and not exists (select from read.gate_agent_tokens t where t.gate_account_id = s.gate_account_id
         and t.gate_session_id = s.gate_session_id and t.status = 'active' and t.expires_at >= $1)
     order by s.expires_at, s.gate_session_id limit $2`,
    [before, limit],
  )
  return rows
}

const dueBy = {
  sessions: { where: `status = 'pending' and approval_started_at is null`, at: 'expires_at' },
  deliveries: { where: `delivery = 'waiting'`, at: 'delivery_expires_at' },
  codes: { where: `code = 'issued'`, at: 'code_expires_at' },
} as const

/** In random order, so that sessions of a partition that stands still do not block the others. */
export async function dueGateSessions(
  db: Db,
  what: keyof typeof dueBy,
  { now, limit }: { now: number; limit: number },
): Promise<GateSessionId[]> {
  const { where, at } = dueBy[what]
  const { rows } = await db.query<{ id: string }>(
    `select gate_session_id as id from read.gate_sessions where ${where} and ${at} <= $1
     order by random() limit $2`,
    [now, limit],
  )
  return rows.map(({ id }) => asId('gate', id))
}

/**
 * The approved signups whose service has not answered yet and that no process works on. Organizations take
 * turns, so that one with many does not keep others out. Of each the longest waiting comes first.
 */
export async function startedApprovals(
  db: Db,
  { each, limit }: { each: number; limit: number },
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
    [each, limit],
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
