import type { Db } from '../../infra/postgres/pool.ts'
import type { SubscribableType } from '../../infra/wire/webhooks/events.ts'
import type { Environment } from '../../schemas/events.ts'
import { type EndpointRecord, endpointFields, endpointRow } from './endpoint-records.ts'
import type { EndpointRow } from './rows.ts'

/** Whose rows are read: nothing is seen across organizations or environments. */
export interface WebhookScope {
  organizationId: string
  environment: Environment
}

/** The endpoint, disabled ones too; undefined when the scope has none of that id. */
export async function findEndpoint(
  db: Db,
  { organizationId, environment, endpointId }: WebhookScope & { endpointId: string },
): Promise<EndpointRow | undefined> {
  const { rows } = await db.query<EndpointRecord>(
    `select ${endpointFields('e')} from read.webhook_endpoints e
     where e.endpoint_id = $1 and e.organization_id = $2 and e.environment = $3`,
    [endpointId, organizationId, environment],
  )
  return rows[0] && endpointRow(rows[0])
}

/** The endpoints that exist among the ids, of any organization. */
export async function findEndpoints(db: Db, endpointIds: string[]): Promise<Map<string, EndpointRow>> {
  const { rows } = await db.query<EndpointRecord>({
    name: 'find-webhook-endpoints',
    text: `select ${endpointFields('e')} from read.webhook_endpoints e where e.endpoint_id = any($1)`,
    values: [endpointIds],
  })
  return new Map(rows.map((record) => [record.id, endpointRow(record)]))
}

/** A list has no more endpoints. Far more than can be active, of which it has all. */
export const maxListedEndpoints = 200

/** The endpoints of one environment: all active ones and the newest disabled ones, newest first. */
export async function listEndpoints(
  db: Db,
  { organizationId, environment }: WebhookScope,
): Promise<EndpointRow[]> {
  const { rows } = await db.query<EndpointRecord>(
    `select * from (
       select ${endpointFields('e')} from read.webhook_endpoints e
       where e.organization_id = $1 and e.environment = $2
       order by (e.status = 'active') desc, e.created_at desc, e.endpoint_id desc
       limit ${maxListedEndpoints}) listed
     order by created_at desc, id desc`,
    [organizationId, environment],
  )
  return rows.map(endpointRow)
}

/** How many endpoints of the organization are active, in both environments. */
export async function countActiveEndpoints(db: Db, organizationId: string): Promise<number> {
  const { rows } = await db.query<{ active: number }>(
    `select count(*)::int as active from read.webhook_endpoints
     where organization_id = $1 and status = 'active'`,
    [organizationId],
  )
  return rows[0]?.active ?? 0
}

/** An event of a type in a scope, for which somebody may have an endpoint. */
export interface WantedEndpoints extends WebhookScope {
  type: SubscribableType
}

type SubscriberRecord = Pick<EndpointRow, 'id' | 'organization_id' | 'environment'> & { event_types: string }

/** The ids of the active endpoints that are subscribed, oldest first, by `${organizationId} ${environment} ${type}`. */
export async function subscribedEndpoints(db: Db, wanted: WantedEndpoints[]): Promise<Map<string, string[]>> {
  const { rows } = await db.query<SubscriberRecord>({
    name: 'subscribed-webhook-endpoints',
    text: `select e.endpoint_id as id, e.organization_id, e.environment, e.event_types
      from read.webhook_endpoints e where e.organization_id = any($1) and e.status = 'active'
      order by e.created_at, e.endpoint_id`,
    values: [[...new Set(wanted.map(({ organizationId }) => organizationId))]],
  })
  const subscribers = new Map<string, string[]>()
  for (const { organizationId, environment, type } of wanted)
    subscribers.set(`${organizationId} ${environment} ${type}`, [])
  for (const { id, organization_id, environment, event_types } of rows) {
    const types: SubscribableType[] = JSON.parse(event_types)
    for (const type of types) subscribers.get(`${organization_id} ${environment} ${type}`)?.push(id)
  }
  return subscribers
}
