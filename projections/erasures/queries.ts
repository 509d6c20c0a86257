import type { Db } from '../../infra/postgres/pool.ts'
import type { Environment } from '../../schemas/events.ts'
import { type ErasureRow, erasures } from './projection.ts'

interface Scope {
  organizationId: string
  environment: Environment
}

export type AskedFor = { visitorId: string } | { userDigests: string[] }

// The rows of the newest erasure that was asked for so.
export async function findErasure(db: Db, scope: Scope, asked: AskedFor): Promise<ErasureRow[]> {
  const [newest, ...others] = await findErasures(db, scope, asked)
  if (!newest) return []
  return [newest, ...others.filter(({ erasure_id }) => erasure_id === newest.erasure_id)]
}

// Of all erasures that were asked for so, newest first.
export async function findErasures(
  db: Db,
  { organizationId, environment }: Scope,
  asked: AskedFor,
): Promise<ErasureRow[]> {
  const [column, ids] =
    'visitorId' in asked
      ? (['visitor_id', [asked.visitorId]] as const)
      : (['user_digest', asked.userDigests] as const)
  const { rows } = await db.query<ErasureRow>(
    `select ${erasures.select('e')} from read.erasures e
     where organization_id = $1 and environment = $2 and ${column} = any($3)
     order by erased_at desc, event_id`,
    [organizationId, environment, ids],
  )
  return rows
}
