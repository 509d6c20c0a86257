import { createHash } from 'node:crypto'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Environment } from '../../schemas/events.ts'
import { type ServiceRecord, serviceFields, serviceRow } from './records.ts'
import type { GateServiceRow } from './rows.ts'

/** Whose services a key sees. */
export interface ServiceScope {
  organizationId: string
  environment: Environment
}

/** The service, whoever owns it, disabled ones too. */
export async function findService(db: Db, serviceId: string): Promise<GateServiceRow | undefined> {
  const { rows } = await db.query<ServiceRecord>(
    `select ${serviceFields('s')} from read.gate_services s where s.service_id = $1`,
    [serviceId],
  )
  return rows[0] && serviceRow(rows[0])
}

/** The services of one organization and environment, disabled ones too, newest first. */
export async function listServices(
  db: Db,
  { organizationId, environment }: ServiceScope,
): Promise<GateServiceRow[]> {
  const { rows } = await db.query<ServiceRecord>(
    `select ${serviceFields('s')} from read.gate_services s
     where s.organization_id = $1 and s.environment = $2 order by s.created_at desc, s.service_id desc`,
    [organizationId, environment],
  )
  return rows.map(serviceRow)
}

/** How many services the organization has, in both environments, disabled ones too. */
export async function countServices(db: Db, organizationId: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*)::int as count from read.gate_services where organization_id = $1',
    [organizationId],
  )
  return rows[0]?.count ?? 0
}

/** Whether the event has had its effect here: a command that makes it again is repeated. */
export async function isServiceEventApplied(db: Db, eventId: string): Promise<boolean> {
  const { rowCount } = await db.query('select from read.gate_applied_events where event_id = $1', [eventId])
  return rowCount === 1
}

/** Those that anyone may sign up for. */
const open = `read.gate_services s join read.organizations o on o.organization_id = s.organization_id
  where s.status = 'active' and s.discoverable and o.status = 'active'`
/** Another when the service is shown in another way. */
const mark = `s.service_id || ' ' || s.verified || ' ' || s.definition_md5`

/** The services that anyone may sign up for, by id: active, discoverable, and of an active organization. */
export async function listRegistry(db: Db): Promise<{ version: string; services: GateServiceRow[] }> {
  const { rows } = await db.query<ServiceRecord & { mark: string }>(
    `select ${serviceFields('s')}, ${mark} as mark from ${open} order by s.service_id`,
  )
  const marks = rows.map(({ mark }) => mark)
  return {
    version: createHash('md5').update(marks.join()).digest('hex'),
    services: rows.map(({ mark: _, ...record }) => serviceRow(record)),
  }
}

/** The `version` that `listRegistry` would have: the same as long as the list is. */
export async function registryVersion(db: Db): Promise<string> {
  const { rows } = await db.query<{ version: string }>({
    name: 'gate-registry-version',
    text: `select md5(coalesce(string_agg(${mark}, ',' order by s.service_id), '')) as version from ${open}`,
  })
  const [row] = rows
  if (!row) throw new Error('the registry has no version')
  return row.version
}

/** The ids that somebody has and that differ from this one in `-` and `_` at most, disabled services too. */
export async function findIdsAlike(db: Db, serviceId: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select service_id as id from read.gate_services
     where replace(service_id, '-', '_') = replace($1, '-', '_') order by service_id`,
    [serviceId],
  )
  return rows.map(({ id }) => id)
}

/** The ids of the active services whose approvals this webhook endpoint is told of. */
export async function servicesToldAt(db: Db, endpointId: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select service_id as id from read.gate_services
     where webhook_endpoint_id = $1 and status = 'active' order by service_id`,
    [endpointId],
  )
  return rows.map(({ id }) => id)
}
