import { column, nullable, primaryKey, type RowOf, table } from '../../infra/postgres/table.ts'

/** Retention in days; 0 = unlimited, null = the operator's default. */
export interface RetentionDays {
  session_days: number | null
  decision_days: number | null
  visitor_days: number | null
  webhook_days: number | null
}

export const dataPolicies = table('data_policies', {
  organization_id: primaryKey(column.id()),
  session_days: nullable(column.integer()),
  decision_days: nullable(column.integer()),
  visitor_days: nullable(column.integer()),
  webhook_days: nullable(column.integer()),
  shortens_addresses: column.boolean(),
  allows_minimal_mode: column.boolean(),
  changed_at: column.bigint(),
  /** Columns hidden from analysts; null = default. */
  hidden_facts: nullable(column.textArray()),
  facts_topic: column.boolean(),
})
export type DataPolicyRow = RowOf<typeof dataPolicies>

/** Newest retention cutoffs in epoch milliseconds; null = nothing has expired yet. */
export const dataExpirations = table('data_expirations', {
  organization_id: primaryKey(column.id()),
  sessions_before: nullable(column.bigint()),
  decisions_before: nullable(column.bigint()),
  visitors_before: nullable(column.bigint()),
  webhooks_before: nullable(column.bigint()),
  expired_at: column.bigint(),
})
export type DataExpirationRow = RowOf<typeof dataExpirations>

/** Changes of scoring models, one per event. */
export const scoringModels = table('scoring_models', {
  event_id: primaryKey(column.id()),
  log_offset: column.bigint(),
  organization_id: nullable(column.id()),
  model_id: nullable(column.id()),
  document: nullable(column.text()),
  effective_at: column.bigint(),
  reason: column.text(),
  changed_at: column.bigint(),
})
export type ScoringModelRow = RowOf<typeof scoringModels>

/** Directories of agent keys that an organization trusts or used to trust. */
export const agentDirectories = table(
  'agent_directories',
  {
    organization_id: column.id(),
    domain: column.id(),
    /** The organization's name for the signer. */
    name: nullable(column.text()),
    is_trusted: column.boolean(),
    changed_at: column.bigint(),
  },
  { key: ['organization_id', 'domain'] },
)
export type AgentDirectoryRow = RowOf<typeof agentDirectories>

export const policyAppliedEvents = table('policy_applied_events', {
  event_id: primaryKey(column.id()),
})
