import type { Db } from '../../infra/postgres/pool.ts'
import type { Environment } from '../../schemas/events.ts'
import { type ErasureRow, erasures } from './projection.ts'

interface Scope {
  organizationId: string
  environment: Environment
}

type Subject = { visitorId: string } | { userDigests: string[] }

/** Returns the rows of the newest erasure of the visitor or user. */
export async function findErasure(db: Db, scope: Scope, subject: Subject): Promise<ErasureRow[]> {
  const [newest, ...others] = await findErasures(db, scope, subject)
  if (!newest) return []
  return [newest, ...others.filter(({ erasure_id }) => erasure_id === newest.erasure_id)]
}

/** Returns the rows of all erasures of the visitor or user, newest first. */
export async function findErasures(
  db: Db,
  { organizationId, environment }: Scope,
  subject: Subject,
): Promise<ErasureRow[]> {
  const [column, ids] =
    'visitorId' in subject
      ? (['visitor_id', [subject.visitorId]] as const)
      : (['user_digest', subject.userDigests] as const)
  const { rows } = await db.query<ErasureRow>(
    `select ${erasures.select('e')} from read.erasures e
     where organization_id = $1 and environment = $2 and ${column} = any($3)
     order by erased_at desc, event_id`,
    [organizationId, environment, ids],
  )
  return rows
}
