import path from 'node:path'
import { behaviorSchema, type Snapshot } from '../../../schemas/observations.ts'
import { planSession, webOnlyMix } from '../../../services/cli/simulate/generate/plan.ts'
import { sendForged } from '../forging.ts'
import { startTidegate, type Tidegate } from '../tidegate.ts'
import { loadTraces, type Trace } from './load.ts'

/** Maximum share of people's traces on which a behavioral risk signal may fire. */
const mostOfPeople = 0.01

export interface Share {
  signal: string
  role: string
  people: number
  bots: number
}

interface Judged {
  by: Trace['by']
  fired: { signal: string; role: string }[]
}

/** Returns the shares of human and bot traces on which each behavior signal fires. */
export function sharesOf(judged: Judged[]): Share[] {
  const signals = new Map(
    judged.flatMap(({ fired }) => fired).map(({ signal, role }) => [signal, role]),
  )
  const share = (signal: string, by: Trace['by']) => {
    const group = judged.filter((trace) => trace.by === by)
    const hits = group.filter(({ fired }) => fired.some((each) => each.signal === signal))
    return group.length === 0 ? 0 : hits.length / group.length
  }
  return [...signals].map(([signal, role]) => {
    return { signal, role, people: share(signal, 'person'), bots: share(signal, 'bot') }
  })
}

export const hurtsPeople = ({ role, people }: Share) => role === 'risk' && people > mostOfPeople

interface Folders {
  balabit: string | undefined
  delbot: string | undefined
}

/** Prints the shares. Returns false if a risk signal fires on too many people, or there are no traces. */
export async function gateTraces({ balabit, delbot }: Folders): Promise<boolean> {
  const traces = [
    ...(balabit ? loadTraces(balabit, 'balabit') : []),
    ...(delbot ? loadTraces(delbot, 'delbot') : []),
  ]
  const people = traces.filter(({ by }) => by === 'person').length
  console.log(`${people} pieces of people's traces, ${traces.length - people} of bots'`)
  const shares = sharesOf(await judge(traces))
  console.table(shares.map((share) => ({ ...share, passes: !hurtsPeople(share) })))
  return people > 0 && !shares.some(hurtsPeople)
}

async function judge(traces: Trace[]): Promise<Judged[]> {
  const file = path.join(import.meta.dirname, 'summary.js')
  const { summarise }: { summarise(trace: Trace): unknown } = await import(file)
  const tidegate = await startTidegate()
  try {
    const judged: Judged[] = []
    for (const trace of traces)
      judged.push({ by: trace.by, fired: await firedBy(summarise(trace), tidegate) })
    return judged
  } finally {
    await tidegate.stop()
  }
}

/** Returns the behavior signals that fire on the summary, sent with the snapshot of an invented person. */
async function firedBy(summary: unknown, tidegate: Tidegate) {
  const snapshot = somebody()
  const behavior = behaviorSchema.parse(Object(summary))
  const body = { version: 1 as const, elapsed_ms: 30_000 }
  const bodies = [
    { ...body, elapsed_ms: 300, snapshot },
    { ...body, behavior },
  ]
  const { signals } = await tidegate.judgement(
    await sendForged(bodies, { answers: 'echoed', tidegate }),
  )
  return signals.filter(({ category }) => category === 'behavioral')
}

function somebody(): Snapshot {
  const { snapshot } = planSession('traces', 0, { ...webOnlyMix, bots: 0 }).batches[0]
  if (!snapshot) throw new Error('a visit begins with a snapshot')
  return snapshot
}
