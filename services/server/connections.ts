import { rateLimitPoolOptions } from '../../infra/access/rate-limit/postgres-store.ts'
import { dataKeyPoolOptions } from '../../infra/event-store/data-key-table.ts'
import { embeddedLogConnections } from '../../infra/log/postgres/log.ts'
import { claimPoolOptions } from '../collect/claims.ts'
import { dispatchPoolOptions } from '../webhooks/dispatch/dispatcher.ts'
import type { Role } from './roles.ts'

/** Maximum numbers of database connections of a process. */
export interface Connections {
  /** Total of all pools and listeners. */
  all: number
  /** Pool that all roles share. */
  pool: number
  /** Pool for API reads; 0 without the role `api`. */
  reads: number
}

// Contribution of each role to the shared pool.
const poolPerRole: Record<Role, number> = {
  collect: 6,
  scoring: 6,
  projections: 10,
  api: 8,
  gate: 8,
  webhooks: 6,
}
const apiReads = 8
// More connections would only compete for the same CPU.
const maxPool = 20
const minReads = 2

const requestRoles: Role[] = ['collect', 'api', 'gate']
const consumerRoles: Role[] = ['scoring', 'projections', 'webhooks']

interface ConnectionParts {
  roles: readonly Role[]
  isLogEmbedded: boolean
  /** DATABASE_MAX_CONNECTIONS. */
  max?: number | undefined
}

/** Divides the connections among the pools of a process. Throws if the setting leaves too few for the roles. */
export function connectionsOf({ roles, isLogEmbedded, max }: ConnectionParts): Connections {
  const dedicated = dedicatedConnections({ roles, isLogEmbedded })
  const hasReads = roles.includes('api')
  if (max !== undefined) return divideMax(max, { dedicated, hasReads, roles })
  const pool = Math.min(maxPool, sum(roles.map((role) => poolPerRole[role])))
  const reads = hasReads ? apiReads : 0
  return { all: dedicated + pool + reads, pool, reads }
}

function divideMax(
  max: number,
  { dedicated, hasReads, roles }: { dedicated: number; hasReads: boolean; roles: readonly Role[] },
): Connections {
  const shared = max - dedicated
  // Commands use up to half of the pool plus one connection. Up to three schedulers use one each, and run commands.
  const minPool = roles.length > 1 ? 8 : 6
  const reads = hasReads
    ? Math.max(minReads, Math.min(shared - minPool, Math.floor(shared / 3)))
    : 0
  const pool = shared - reads
  if (pool >= minPool) return { all: max, pool, reads }
  const min = dedicated + minPool + (hasReads ? minReads : 0)
  throw new Error(
    `DATABASE_MAX_CONNECTIONS must be at least ${min} for the roles ${roles.join(', ')}, got ${max}.`,
  )
}

// Counts listeners, and pools for work that must not wait for other work.
function dedicatedConnections({ roles, isLogEmbedded }: Omit<ConnectionParts, 'max'>): number {
  const hasAny = (...candidates: Role[]) => candidates.some((role) => roles.includes(role))
  const { writers, consumers } = embeddedLogConnections
  return sum([
    // The listener for applied offsets, and the pool for data keys.
    1 + dataKeyPoolOptions({ isLogEmbedded }).max,
    hasAny(...requestRoles) ? rateLimitPoolOptions.max : 0,
    hasAny('collect') ? claimPoolOptions.max : 0,
    hasAny('webhooks') ? dispatchPoolOptions.max : 0,
    isLogEmbedded ? writers : 0,
    isLogEmbedded && hasAny(...consumerRoles) ? consumers : 0,
  ])
}

const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0)
