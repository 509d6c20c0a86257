import type { Db } from '../../../infra/postgres/pool.ts'

/** An endpoint with deliveries that are due. */
export interface DueEndpoint {
  endpointId: string
  organizationId: string
  /** How many are due, those that are being made now among them; counted up to 20. */
  due: number
}

export interface Due {
  /** In the order of their ids. */
  endpoints: DueEndpoint[]
  /** When something that is not due yet will be (epoch milliseconds); Infinity for nothing. */
  nextAt: number
}

/** Ten that are being made and ten to make: nobody acts on more of one endpoint. */
const mostCounted = 20

export interface DueOptions {
  /** Epoch milliseconds. */
  now: number
  /** So many deliveries are read in the order in which they are due. */
  firstRows?: number
  /** So many endpoints are looked up at once. */
  pageSize?: number
}

/**
 * Which endpoints have something due. Usually the first 1,000 due deliveries are all there are; what is due later is not
 * read. Where more are due, it looks into the index once for each endpoint, however many deliveries wait for it: a queue
 * of a million for a dead endpoint costs the others nothing.
 */
export async function dueEndpoints(
  db: Db,
  { now, firstRows = 1000, pageSize = 500 }: DueOptions,
): Promise<Due> {
  const { rows, endpoints, nextAt } = await firstDue(db, { now, firstRows })
  if (rows < firstRows) return { endpoints, nextAt }
  const all: DueEndpoint[] = []
  for (let after = ''; ; after = all.at(-1)?.endpointId ?? '') {
    const page = await duePage(db, { now, after, pageSize })
    all.push(...page)
    if (page.length < pageSize) return { endpoints: all, nextAt }
  }
}

interface FirstDue extends Due {
  /** How many deliveries were read. */
  rows: number
}

async function firstDue(db: Db, { now, firstRows }: { now: number; firstRows: number }): Promise<FirstDue> {
  const { rows } = await db.query<{ nextAt: number | null; endpoints: DueEndpoint[] | null }>({
    name: 'webhook-first-due',
    text: `
      with first as materialized (
        select endpoint_id, organization_id from read.webhook_deliveries
        where next_attempt_at <= $1 order by next_attempt_at limit $2)
      select
        (select min(next_attempt_at) from read.webhook_deliveries where next_attempt_at > $1)::float8 as "nextAt",
        (select json_agg(json_build_object('endpointId', endpoint_id, 'organizationId', organization_id, 'due', n)
                         order by endpoint_id)
          from (select endpoint_id, organization_id, count(*) as n from first group by 1, 2) e) as endpoints`,
    values: [now, firstRows],
  })
  const endpoints = rows[0]?.endpoints ?? []
  return {
    endpoints,
    nextAt: rows[0]?.nextAt ?? Infinity,
    rows: endpoints.reduce((sum, { due }) => sum + due, 0),
  }
}

interface Page {
  now: number
  /** Endpoints whose id is greater come. */
  after: string
  pageSize: number
}

async function duePage(db: Db, { now, after, pageSize }: Page): Promise<DueEndpoint[]> {
  const { rows } = await db.query<DueEndpoint>({
    name: 'webhook-due-page',
    text: `
      with recursive found as (
        (select endpoint_id, organization_id, 1 as place from read.webhook_deliveries
          where endpoint_id > $2 and next_attempt_at <= $1
          order by endpoint_id, next_attempt_at limit 1)
        union all
        select next.* from found, lateral (
          select endpoint_id, organization_id, found.place + 1 from read.webhook_deliveries
           where endpoint_id > found.endpoint_id and next_attempt_at <= $1
           order by endpoint_id, next_attempt_at limit 1) next
         where found.place < $3
      )
      select endpoint_id as "endpointId", organization_id as "organizationId", (
        select count(*)::int from (
          select from read.webhook_deliveries d
          where d.endpoint_id = found.endpoint_id and d.next_attempt_at <= $1
          order by d.next_attempt_at limit ${mostCounted}) counted) as due
      from found order by place`,
    values: [now, after, pageSize],
  })
  return rows
}
