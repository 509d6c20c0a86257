import ids from '../../schemas/ids.json' with { type: 'json' }
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import { spreadOf } from '../stats.ts'
import { costOfSessions } from './session-cost.ts'

const inFlight = 16

/** The newest versions of events that encrypt nothing. */
const readable = { WRITE_SCHEMAS_UP_TO: String(ids['visitors/VisitorLinked.v1']) }

/**
 * What it takes that events are encrypted: processor time and bytes a session, beside the same program that writes
 * readable ones. A key is made in both. In turns, as a busy machine changes more between two runs than encryption does.
 */
export async function measureDataKeys(
  environment: Environment,
  { sessions, rounds }: { sessions: number; rounds: number },
): Promise<Measurement[]> {
  const costs: { plain: Cost; sealed: Cost[] }[] = []
  const measure = (env: Record<string, string>) => costOf(environment, { sessions, env })
  for (let round = 0; round < rounds; round++) {
    // The database grows from run to run: between two encrypted ones is a readable one.
    const [before, plain, after] = [await measure({}), await measure(readable), await measure({})]
    costs.push({ plain, sealed: [before, after] })
  }
  const more = (of: (cost: Cost) => number) =>
    spreadOf(costs.map(({ plain, sealed }) => meanOf(sealed.map(of)) / of(plain)))
  const median = (of: (cost: (typeof costs)[number]) => number) => spreadOf(costs.map(of)).median
  return [
    {
      name: `processor time a session with data keys against readable events, ${inFlight} in flight`,
      log: environment.logName,
      unit: 'ratio',
      value: more(({ total }) => total),
      aim: { direction: 'at most', value: 1.05 },
      details: {
        'ms encrypted': median(({ sealed }) => meanOf(sealed.map(({ total }) => total))),
        'ms readable': median(({ plain }) => plain.total),
      },
    },
    {
      name: 'bytes of the log a session with data keys against readable events',
      log: environment.logName,
      unit: 'ratio',
      value: more(({ details }) => details['log KB']),
      aim: { direction: 'at most', value: 1.05 },
      details: {
        'KB encrypted': median(({ sealed }) => meanOf(sealed.map(({ details }) => details['log KB']))),
        'KB readable': median(({ plain }) => plain.details['log KB']),
      },
    },
  ]
}

const meanOf = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

type Cost = Awaited<ReturnType<typeof costOfSessions>>

async function costOf(
  environment: Environment,
  { sessions, env }: { sessions: number; env: Record<string, string> },
): Promise<Cost> {
  const child = await environment.startAllInOne({ sheds: false, env })
  try {
    return await costOfSessions({ environment, child, servers: [child], inFlight, sessions })
  } finally {
    await child.stop()
  }
}
