import { allRoles, type Role } from '../../services/server/roles.ts'
import type { Child } from '../child.ts'
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import { spreadOf } from '../stats.ts'
import { costOfSessions } from './session-cost.ts'

const inFlight = 16

/** Roles of each process. The first process receives the sessions. */
const splits: readonly (readonly Role[])[][] = [
  [allRoles],
  [['collect'], ['scoring', 'projections', 'api', 'gate', 'webhooks']],
  [['collect'], ['scoring'], ['projections'], ['api', 'gate', 'webhooks']],
]

/** Measures the total cost of a session, stores included, with all roles in one process and in several. */
export async function measureRoles(
  environment: Environment,
  sessions: number,
): Promise<Measurement[]> {
  const measurements: Measurement[] = []
  for (const split of splits)
    measurements.push(await measureSplit(split, { environment, sessions }))
  return measurements
}

interface Parts {
  environment: Environment
  sessions: number
}

async function measureSplit(
  split: readonly (readonly Role[])[],
  { environment, sessions }: Parts,
): Promise<Measurement> {
  const servers: Child[] = []
  try {
    for (const roles of split) servers.push(await environment.startRoles(...roles))
    const [child] = servers
    if (!child) throw new Error('no role was started')
    const cost = await costOfSessions({ environment, child, servers, inFlight, sessions })
    const byRole = split.map((roles, i) => [`${roles.join('+')} ms`, cost.byServer[i] ?? 0])
    return {
      name: `processor time a session, servers and Postgres, roles in ${split.length} processes, ${inFlight} in flight`,
      log: environment.logName,
      unit: 'ms',
      value: spreadOf([cost.total]),
      details: { ...Object.fromEntries(byRole), ...cost.details },
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
}
