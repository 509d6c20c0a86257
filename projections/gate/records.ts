import { storable } from '../../infra/event-store/text.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { saveRows } from '../../infra/postgres/save-rows.ts'
import type { Column } from '../../infra/postgres/unnest.ts'
import type { AgentTokenRow, GateServiceRow, GateSessionRow } from './rows.ts'

/** A service as stored: its definition is JSON text. */
export type ServiceRecord = Omit<GateServiceRow, 'definition'> & { definition: string }

/** The columns of a service in the table named `alias`, bigints as numbers; read them with `serviceRow`. */
export const serviceFields = (alias: string) => `${alias}.service_id as id, ${alias}.organization_id,
  ${alias}.environment, ${alias}.status, ${alias}.verified, ${alias}.definition, ${alias}.created_at::float8,
  ${alias}.updated_at::float8`

export function serviceRow(record: ServiceRecord): GateServiceRow {
  return { ...record, definition: JSON.parse(record.definition) }
}

/** The columns of a signup or login in the table named `alias`: a `GateSessionRow`. */
export const sessionFields = (alias: string) => `${alias}.gate_session_id as id, ${alias}.kind,
  ${alias}.service_id, ${alias}.organization_id, ${alias}.environment, ${alias}.account_name, ${alias}.metadata,
  ${alias}.delivery_key_id, ${alias}.delivery_public_key, ${alias}.poll_token_hash, ${alias}.requested_ip,
  ${alias}.requested_user_agent, ${alias}.opened_at::float8, ${alias}.expires_at::float8, ${alias}.status,
  ${alias}.resolved_at::float8, ${alias}.rejection, ${alias}.problem, ${alias}.gate_account_id,
  ${alias}.webhook_endpoint_id, ${alias}.approval_started_at::float8, ${alias}.approve_token_hash,
  ${alias}.verdict, ${alias}.risk_score, ${alias}.delivery, ${alias}.delivery_sealed,
  ${alias}.delivery_expires_at::float8, ${alias}.ack_token_hash, ${alias}.delivery_acknowledgement_id,
  ${alias}.code, ${alias}.code_hash, ${alias}.code_expires_at::float8, ${alias}.code_consumption_id`

/** The columns of an agent token in the table named `alias`: an `AgentTokenRow`. */
export const tokenFields = (alias: string) => `${alias}.gate_account_id, ${alias}.gate_session_id,
  ${alias}.service_id, ${alias}.organization_id, ${alias}.environment, ${alias}.account_name,
  ${alias}.token_hash, ${alias}.status, ${alias}.created_at::float8, ${alias}.expires_at::float8`

const serviceColumns: Column<GateServiceRow>[] = [
  { name: 'service_id', type: 'text', of: (row) => row.id },
  { name: 'organization_id', type: 'text', of: (row) => row.organization_id },
  { name: 'environment', type: 'text', of: (row) => row.environment },
  { name: 'status', type: 'text', of: (row) => row.status },
  { name: 'verified', type: 'boolean', of: (row) => row.verified },
  { name: 'discoverable', type: 'boolean', of: (row) => row.definition.discoverable },
  { name: 'webhook_endpoint_id', type: 'text', of: (row) => row.definition.webhook_endpoint_id },
  { name: 'definition', type: 'text', of: (row) => JSON.stringify(row.definition) },
  { name: 'created_at', type: 'bigint', of: (row) => row.created_at },
  { name: 'updated_at', type: 'bigint', of: (row) => row.updated_at },
]

const text = (value: string | null) => (value === null ? null : storable(value))

const sessionColumns: Column<GateSessionRow>[] = [
  { name: 'gate_session_id', type: 'text', of: (row) => row.id },
  { name: 'kind', type: 'text', of: (row) => row.kind },
  { name: 'service_id', type: 'text', of: (row) => row.service_id },
  { name: 'organization_id', type: 'text', of: (row) => row.organization_id },
  { name: 'environment', type: 'text', of: (row) => row.environment },
  { name: 'account_name', type: 'text', of: (row) => storable(row.account_name) },
  { name: 'metadata', type: 'text', of: (row) => text(row.metadata) },
  { name: 'delivery_key_id', type: 'text', of: (row) => row.delivery_key_id },
  { name: 'delivery_public_key', type: 'text', of: (row) => row.delivery_public_key },
  { name: 'poll_token_hash', type: 'text', of: (row) => row.poll_token_hash },
  { name: 'requested_ip', type: 'text', of: (row) => text(row.requested_ip) },
  { name: 'requested_user_agent', type: 'text', of: (row) => text(row.requested_user_agent) },
  { name: 'opened_at', type: 'bigint', of: (row) => row.opened_at },
  { name: 'expires_at', type: 'bigint', of: (row) => row.expires_at },
  { name: 'status', type: 'text', of: (row) => row.status },
  { name: 'resolved_at', type: 'bigint', of: (row) => row.resolved_at },
  { name: 'rejection', type: 'text', of: (row) => row.rejection },
  { name: 'problem', type: 'text', of: (row) => text(row.problem) },
  { name: 'gate_account_id', type: 'text', of: (row) => row.gate_account_id },
  { name: 'webhook_endpoint_id', type: 'text', of: (row) => row.webhook_endpoint_id },
  { name: 'approval_started_at', type: 'bigint', of: (row) => row.approval_started_at },
  { name: 'approve_token_hash', type: 'text', of: (row) => row.approve_token_hash },
  { name: 'verdict', type: 'text', of: (row) => row.verdict },
  { name: 'risk_score', type: 'integer', of: (row) => row.risk_score },
  { name: 'delivery', type: 'text', of: (row) => row.delivery },
  { name: 'delivery_sealed', type: 'bytea', of: (row) => row.delivery_sealed },
  { name: 'delivery_expires_at', type: 'bigint', of: (row) => row.delivery_expires_at },
  { name: 'ack_token_hash', type: 'text', of: (row) => row.ack_token_hash },
  { name: 'delivery_acknowledgement_id', type: 'text', of: (row) => row.delivery_acknowledgement_id },
  { name: 'code', type: 'text', of: (row) => row.code },
  { name: 'code_hash', type: 'text', of: (row) => row.code_hash },
  { name: 'code_expires_at', type: 'bigint', of: (row) => row.code_expires_at },
  { name: 'code_consumption_id', type: 'text', of: (row) => row.code_consumption_id },
]

const tokenColumns: Column<AgentTokenRow>[] = [
  { name: 'gate_account_id', type: 'text', of: (row) => row.gate_account_id },
  { name: 'gate_session_id', type: 'text', of: (row) => row.gate_session_id },
  { name: 'service_id', type: 'text', of: (row) => row.service_id },
  { name: 'organization_id', type: 'text', of: (row) => row.organization_id },
  { name: 'environment', type: 'text', of: (row) => row.environment },
  { name: 'account_name', type: 'text', of: (row) => storable(row.account_name) },
  { name: 'token_hash', type: 'text', of: (row) => row.token_hash },
  { name: 'status', type: 'text', of: (row) => row.status },
  { name: 'created_at', type: 'bigint', of: (row) => row.created_at },
  { name: 'expires_at', type: 'bigint', of: (row) => row.expires_at },
]

/** Writes services whole, as the others write theirs. */
export function saveServices(db: Db, rows: GateServiceRow[]): Promise<void> {
  return saveRows(db, { table: 'gate_services', columns: serviceColumns, rows })
}

export function saveSessions(db: Db, rows: GateSessionRow[]): Promise<void> {
  return saveRows(db, { table: 'gate_sessions', columns: sessionColumns, rows })
}

export function saveAgentTokens(db: Db, rows: AgentTokenRow[]): Promise<void> {
  return saveRows(db, { table: 'gate_agent_tokens', columns: tokenColumns, rows })
}
