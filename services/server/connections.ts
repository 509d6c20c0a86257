import { rateLimitPoolOptions } from '../../infra/access/rate-limit/postgres-store.ts'
import { dataKeyPoolOptions } from '../../infra/event-store/data-key-table.ts'
import { embeddedLogConnections } from '../../infra/log/postgres/log.ts'
import { claimPoolOptions } from '../collect/claims.ts'
import { dispatchPoolOptions } from '../webhooks/dispatch/dispatcher.ts'
import type { Role } from './roles.ts'

/** How many connections to the database a process opens at most. `all` has those of its two shared pools, too. */
export interface Connections {
  all: number
  pool: number
  /** For reads of API callers; 0 without the role `api`. */
  reads: number
}

// Connections for each role, in the pool that all roles of a process share.
const poolOf: Record<Role, number> = {
  collect: 6,
  scoring: 6,
  projections: 10,
  api: 8,
  gate: 8,
  webhooks: 6,
}
const readsOfApi = 8
// With several roles in one process more would only wait for the same processor.
const largestPool = 20
const fewestReads = 2

const answering: Role[] = ['collect', 'api', 'gate']
const consuming: Role[] = ['scoring', 'projections', 'webhooks']

interface ConnectionParts {
  roles: readonly Role[]
  isLogEmbedded: boolean
  /** DATABASE_MAX_CONNECTIONS. */
  max?: number | undefined
}

/** Throws where the setting leaves too few for the roles. */
export function connectionsOf({ roles, isLogEmbedded, max }: ConnectionParts): Connections {
  const own = ownConnections({ roles, isLogEmbedded })
  const hasReads = roles.includes('api')
  if (max !== undefined) return withMax(max, { own, hasReads, roles })
  const pool = Math.min(largestPool, sum(roles.map((role) => poolOf[role])))
  const reads = hasReads ? readsOfApi : 0
  return { all: own + pool + reads, pool, reads }
}

function withMax(
  max: number,
  { own, hasReads, roles }: { own: number; hasReads: boolean; roles: readonly Role[] },
): Connections {
  const shared = max - own
  // Commands take half of the pool and may need one more. Up to three schedulers have one each, and run commands.
  const fewestPool = roles.length > 1 ? 8 : 6
  const reads = hasReads
    ? Math.max(fewestReads, Math.min(shared - fewestPool, Math.floor(shared / 3)))
    : 0
  const pool = shared - reads
  if (pool >= fewestPool) return { all: max, pool, reads }
  const fewest = own + fewestPool + (hasReads ? fewestReads : 0)
  throw new Error(
    `DATABASE_MAX_CONNECTIONS is ${max}, and a process with ${roles.join(', ')} needs ${fewest} at least.`,
  )
}

// Connections for work that must not wait for other work, and for listeners.
function ownConnections({ roles, isLogEmbedded }: Omit<ConnectionParts, 'max'>): number {
  const has = (some: Role[]) => some.some((role) => roles.includes(role))
  const { writers, consumers } = embeddedLogConnections
  return sum([
    // The listener for what was applied, and the keys of sessions.
    1 + dataKeyPoolOptions({ isLogEmbedded }).max,
    has(answering) ? rateLimitPoolOptions.max : 0,
    has(['collect']) ? claimPoolOptions.max : 0,
    has(['webhooks']) ? dispatchPoolOptions.max : 0,
    isLogEmbedded ? writers : 0,
    isLogEmbedded && has(consuming) ? consumers : 0,
  ])
}

const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0)
