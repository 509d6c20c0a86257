import { generateApiKey } from '../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { createRandom } from '../../infra/random.ts'
import { type Child, costOf } from '../child.ts'
import type { Environment } from '../environment.ts'
import { type LoadRequest, runLoad } from '../load.ts'
import type { Measurement } from '../measurement.ts'
import { deal, fixedSequence, openBody, openRequest } from '../prepare.ts'
import { treeCpuMicros } from '../procfs.ts'
import { interleave } from '../rounds.ts'
import type { Scale } from '../scale.ts'
import { pairedRatio, spreadOf } from '../stats.ts'

const connections = 48

/**
 * Measures the overhead of verifying a key and charging a rate-limit unit, as a share of the floor request's CPU
 * time. Runs the same handler with and without the hook, in one process and in three that share a bucket.
 */
export async function measureGuard(environment: Environment, scale: Scale): Promise<Measurement[]> {
  const measurements: Measurement[] = []
  for (const processes of [1, 3])
    measurements.push(await measureWith(processes, { environment, scale }))
  return measurements
}

interface Parts {
  environment: Environment
  scale: Scale
}

async function measureWith(processes: number, { environment, scale }: Parts): Promise<Measurement> {
  const keyring = createKeyring(environment.settings.TIDEGATE_MASTER_KEYS)
  const kind = { type: 'publishable', environment: 'live' } as const
  const { key } = generateApiKey({ ...kind, keyring, random: createRandom() })
  const children = await Promise.all(
    Array.from({ length: processes }, () => environment.startGuardedFloor(key)),
  )
  const bodies = Array.from({ length: 256 }, (_, index) => openBody(index))
  const round = (path: string) => async () => {
    const requests = Array.from({ length: scale.guarded }, (_, i) => {
      const body = bodies[i % bodies.length] ?? Buffer.alloc(0)
      return { ...openRequest(key, body), path: `${path}/sid_${i}` }
    })
    return runRound(children, { requests, storePids: environment.storePids })
  }
  try {
    const samples = await interleave(scale.guardTurns, [
      { name: 'guarded', run: round('/guarded') },
      { name: 'plain', run: round('/append') },
    ])
    return result(processes, {
      environment,
      guarded: samples.guarded ?? [],
      plain: samples.plain ?? [],
    })
  } finally {
    await Promise.all(children.map((child) => child.stop()))
  }
}

interface Round {
  micros: number
  storeMicros: number
}

async function runRound(
  children: Child[],
  { requests, storePids }: { requests: LoadRequest[]; storePids: number[] },
): Promise<Round> {
  const hands = deal(requests, children.length)
  const storeCpu = () => storePids.reduce((sum, pid) => sum + treeCpuMicros(pid), 0)
  const before = storeCpu()
  const costs = await Promise.all(
    children.map((child, i) => {
      const sequences = deal(hands[i] ?? [], connections / children.length).map(fixedSequence)
      return costOf(child, () => runLoad(child.url, sequences))
    }),
  )
  const cpuMicros = costs.reduce((sum, cost) => sum + cost.cpuMicros, 0)
  return {
    micros: cpuMicros / requests.length,
    storeMicros: (storeCpu() - before) / requests.length,
  }
}

interface Result {
  environment: Environment
  guarded: Round[]
  plain: Round[]
}

function result(processes: number, { environment, guarded, plain }: Result): Measurement {
  const micros = (rounds: Round[]) => rounds.map((round) => round.micros)
  const store = (rounds: Round[]) => spreadOf(rounds.map((round) => round.storeMicros)).median
  const added = guarded.map((round, i) => round.micros - (plain[i]?.micros ?? Number.NaN))
  return {
    name: `authentication and rate limit, share of the floor request, ${processes === 1 ? 'one process' : `${processes} processes`}`,
    log: environment.logName,
    unit: 'ratio',
    value: pairedRatio(added, micros(plain)),
    aim: { direction: 'at most', value: 0.1 },
    details: {
      'added µs': spreadOf(added).median,
      'floor µs': spreadOf(micros(plain)).median,
      'store µs with': store(guarded),
      'store µs without': store(plain),
    },
  }
}
