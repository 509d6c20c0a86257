import { hash } from 'node:crypto'
import { sourceOf } from '../../infra/access/source.ts'
import { networkPrefix } from '../../infra/ip/network.ts'
import { column, nullable, primaryKey, table } from '../../infra/postgres/table.ts'
import type { Environment } from '../../schemas/events.ts'

/** Windows over which repeats are counted, in milliseconds. */
export const windows = {
  five_minutes: 5 * 60 * 1000,
  hour: 60 * 60 * 1000,
  day: 24 * 60 * 60 * 1000,
} as const

// Keys by which sessions are counted. Each hashes organization, environment and value, so tenants never match.
const keyColumns = {
  address: nullable(column.bytea()),
  network: nullable(column.bytea()),
  visitor: nullable(column.bytea()),
  snapshot: nullable(column.bytea()),
  // Traits of the machine that a replay seldom changes. Compared, but not searched.
  machine: nullable(column.bytea()),
  behavior: nullable(column.bytea()),
  // Digests of the input profile. Near-duplicates share at least one.
  near_1: nullable(column.bytea()),
  near_2: nullable(column.bytea()),
  near_3: nullable(column.bytea()),
  // Compared, but not searched.
  pace: nullable(column.bytea()),
}
export const nearNames = ['near_1', 'near_2', 'near_3'] as const
/** Keys derived from the session's input. */
export const inputNames = ['behavior', ...nearNames, 'pace'] as const
export const keyNames = [
  'address',
  'network',
  'visitor',
  'snapshot',
  'machine',
  ...inputNames,
] as const
export type RepeatKeys = Record<keyof typeof keyColumns, Buffer | null>

/** A row per session. Times are epoch milliseconds. */
export const repeats = table('repeats', {
  session_id: primaryKey(column.id()),
  // Rows a day older than the newest of their partition are deleted.
  log_partition: column.integer(),
  opened_at: column.bigint(),
  // Observation time of the decision that set the keys; earlier decisions are ignored.
  observed_at: column.bigint(),
  ...keyColumns,
  // Numbers of the input profile, compared when a digest matches.
  hands: nullable(column.bytea()),
  client_user: nullable(column.bytea()),
  // Time when the user was attached or cleared.
  user_at: nullable(column.bigint()),
})

export const repeatApplyIndexes = `
  create index on repeats (log_partition, opened_at);
`

export const repeatReadIndexes = `
  create index on repeats (address, opened_at);
  create index on repeats (network, opened_at);
  create index on repeats (visitor, opened_at);
  create index on repeats (snapshot, opened_at);
  create index on repeats (behavior, opened_at) where behavior is not null;
  ${nearNames.map((name) => `create index on repeats (${name}, opened_at) where ${name} is not null;`).join('\n  ')}
  create index on repeats (client_user, opened_at) where client_user is not null;
`

interface Scope {
  organization_id: string
  environment: Environment
}

export interface Repeatable extends Scope {
  ip_address: string
  visitor_id: string | null
  /** Hash, then parts that are compared if the hash differs, separated by dots. */
  snapshot_hash: string | null
  behavior_hash: string | null
}

export function repeatKeys(session: Repeatable): RepeatKeys & { hands: Buffer | null } {
  const { ip_address: ip, visitor_id } = session
  const network = networkPrefix(ip)
  const [snapshot = null, machine = null] = session.snapshot_hash?.split('.') ?? []
  const [behavior = null, near_1 = null, near_2 = null, near_3 = null, pace = null, hands = null] =
    session.behavior_hash?.split('.') ?? []
  return {
    // An IPv6 client can change its address within a /64.
    address: network === null ? null : key(session, 'address', sourceOf(ip)),
    network: key(session, 'network', network),
    visitor: key(session, 'visitor', visitor_id),
    snapshot: key(session, 'snapshot', snapshot),
    machine: key(session, 'machine', machine),
    behavior: key(session, 'behavior', behavior || null),
    near_1: key(session, 'near_1', near_1 || null),
    near_2: key(session, 'near_2', near_2 || null),
    near_3: key(session, 'near_3', near_3 || null),
    pace: key(session, 'pace', pace || null),
    hands: hands === null ? null : Buffer.from(hands, 'base64url'),
  }
}

export function clientUserKey(scope: Scope, clientUserId: string): Buffer | null {
  return key(scope, 'user', clientUserId)
}

// 96 bits of SHA-256 rule out accidental and deliberate collisions within a day.
function key(
  { organization_id, environment }: Scope,
  kind: string,
  value: string | null,
): Buffer | null {
  if (value === null) return null
  return hash('sha256', [organization_id, environment, kind, value].join('\0'), 'buffer').subarray(
    0,
    12,
  )
}
