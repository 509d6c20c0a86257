import { hash } from 'node:crypto'
import { sourceOf } from '../../infra/access/source.ts'
import { networkPrefix } from '../../infra/ip/network.ts'
import { column, nullable, primaryKey, table } from '../../infra/postgres/table.ts'
import type { Environment } from '../../schemas/events.ts'

/** The windows that repeats are counted over, in milliseconds. */
export const windows = {
  five_minutes: 5 * 60 * 1000,
  hour: 60 * 60 * 1000,
  day: 24 * 60 * 60 * 1000,
} as const

// Sessions are counted by these. Each is a hash of organization, environment and value: short, and nothing of one
// tenant's is ever found by another.
const keyColumns = {
  address: nullable(column.bytea()),
  network: nullable(column.bytea()),
  visitor: nullable(column.bytea()),
  snapshot: nullable(column.bytea()),
  // Traits of the machine that a replay seldom changes. They are compared, and nothing is found by them.
  machine: nullable(column.bytea()),
  behavior: nullable(column.bytea()),
  // Nearly the same hands have one of the first three in common. The pace is only compared.
  near_1: nullable(column.bytea()),
  near_2: nullable(column.bytea()),
  near_3: nullable(column.bytea()),
  pace: nullable(column.bytea()),
}
export const nearNames = ['near_1', 'near_2', 'near_3'] as const
/** Keys that are made of the summary of input. */
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

/** One row a session. Times are epoch milliseconds. */
export const repeats = table('repeats', {
  session_id: primaryKey(column.id()),
  // The newest session of the same partition decides how old rows may get.
  log_partition: column.integer(),
  opened_at: column.bigint(),
  // The time of the decision that the keys are from, because an earlier decision changes nothing.
  observed_at: column.bigint(),
  ...keyColumns,
  // The numbers themselves, which are compared where hands may be nearly the same.
  hands: nullable(column.bytea()),
  client_user: nullable(column.bytea()),
  // When that was attached or cleared.
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
  /** Each is followed by what is compared where it is not equal, if there is any. */
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
    // A customer has a whole /64 of IPv6, and takes another address of it now and then.
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

export function userKey(scope: Scope, clientUserId: string): Buffer | null {
  return key(scope, 'user', clientUserId)
}

// The first 12 bytes of SHA-256: no two values of a day have the same by chance, and nobody finds some that do.
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
