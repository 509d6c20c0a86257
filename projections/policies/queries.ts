import type { Db } from '../../infra/postgres/pool.ts'
import {
  type AgentDirectoryRow,
  agentDirectories,
  type DataExpirationRow,
  type DataPolicyRow,
  dataExpirations,
  dataPolicies,
  type ScoringModelRow,
  scoringModels,
} from './tables.ts'

/** Returns undefined if the organization never changed the default policy. */
export async function findDataPolicy(
  db: Db,
  organizationId: string,
): Promise<DataPolicyRow | undefined> {
  const { rows } = await db.query<DataPolicyRow>(
    `select ${dataPolicies.select('p')} from read.data_policies p where p.organization_id = $1`,
    [organizationId],
  )
  return rows[0]
}

export async function findDataExpiration(
  db: Db,
  organizationId: string,
): Promise<DataExpirationRow | undefined> {
  const { rows } = await db.query<DataExpirationRow>(
    `select ${dataExpirations.select('e')} from read.data_expirations e where e.organization_id = $1`,
    [organizationId],
  )
  return rows[0]
}

/** Returns every organization, including deleted ones, with its policy and retention cutoffs. */
export async function listRetention(
  db: Db,
): Promise<
  { organizationId: string; policy: DataPolicyRow | null; expired: DataExpirationRow | null }[]
> {
  const { rows } = await db.query(
    `select o.organization_id as "organizationId", to_json(p) as policy, to_json(e) as expired
     from read.organizations o
       left join read.data_policies p using (organization_id)
       left join read.data_expirations e using (organization_id)
     order by o.organization_id`,
  )
  return rows
}

export async function findMinimalModeOrganizations(db: Db): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    'select organization_id as id from read.data_policies where allows_minimal_mode',
  )
  return rows.map(({ id }) => id)
}

export async function findRetentionCutoffs(db: Db): Promise<DataExpirationRow[]> {
  const { rows } = await db.query<DataExpirationRow>(
    `select ${dataExpirations.select('e')} from read.data_expirations e order by e.organization_id`,
  )
  return rows
}

/** Returns the changes of an organization's scoring model and of the default model, in log order. */
export async function listModelChanges(
  db: Db,
  organizationId: string | null,
): Promise<{ own: ScoringModelRow[]; defaults: ScoringModelRow[] }> {
  const { rows } = await db.query<ScoringModelRow>(
    `select ${scoringModels.select('m')} from read.scoring_models m
     where m.organization_id is null or m.organization_id = $1 order by m.log_offset`,
    [organizationId],
  )
  return {
    own: rows.filter((row) => row.organization_id !== null),
    defaults: rows.filter((row) => row.organization_id === null),
  }
}

/** Returns the model changes of all organizations in log order; `document` is null for known events. */
export async function listNewModelChanges(
  db: Db,
  knownEventIds: string[],
): Promise<
  Pick<ScoringModelRow, 'event_id' | 'organization_id' | 'model_id' | 'effective_at' | 'document'>[]
> {
  const { rows } = await db.query(
    `select event_id, organization_id, model_id, effective_at::float8 as effective_at,
       case when event_id <> all($1) then document end as document
     from read.scoring_models order by log_offset`,
    [knownEventIds],
  )
  return rows
}

/** Returns the directories that the organization trusts, ordered by domain. */
export async function findAgentDirectories(
  db: Db,
  organizationId: string,
): Promise<AgentDirectoryRow[]> {
  const { rows } = await db.query<AgentDirectoryRow>(
    `select ${agentDirectories.select('a')} from read.agent_directories a
     where a.organization_id = $1 and a.is_trusted order by a.domain`,
    [organizationId],
  )
  return rows
}

/** Returns the trusted directories of all organizations. */
export async function trustedDirectories(
  db: Db,
): Promise<Pick<AgentDirectoryRow, 'organization_id' | 'domain' | 'name'>[]> {
  const { rows } = await db.query(
    'select organization_id, domain, name from read.agent_directories where is_trusted',
  )
  return rows
}
