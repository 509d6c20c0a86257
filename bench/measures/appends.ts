import { z } from 'zod'
import { createPool } from '../../infra/postgres/pool.ts'
import { type Child, startChild } from '../child.ts'
import { costRatio, measureRound, type Round } from '../compare.ts'
import type { Environment } from '../environment.ts'
import type { Aim, Measurement } from '../measurement.ts'
import { createPeerDatabase, findPeers } from '../peers/peers.ts'
import { memory } from '../procfs.ts'
import { runRound } from '../round-server.ts'
import { interleave, type Variant } from '../rounds.ts'
import type { Scale } from '../scale.ts'
import { spreadOf } from '../stats.ts'
import { costOfSessions } from './session-cost.ts'

const levels = [
  { inFlight: 4, sessionAim: 1.4 },
  { inFlight: 64, sessionAim: 0.5 },
]
const atMost = (value: number): Aim => ({ direction: 'at most', value })

/**
 * Measures the cost of a record. On Kafka, appends it, in turns with plain kafkajs. On Postgres, appends it, scores its
 * session and applies it to the read models, in turns with Emmett.
 */
export function measureAppends(environment: Environment, scale: Scale): Promise<Measurement[]> {
  return environment.logName === 'kafka'
    ? measureKafkaAppends(environment, scale)
    : measureSessionRecords(environment, scale)
}

async function measureKafkaAppends(
  environment: Environment,
  { peerTurns, appendSeconds: seconds }: Scale,
): Promise<Measurement[]> {
  await using undo = new AsyncDisposableStack()
  const start = async (name: string) => {
    const child = await startChild(['bench/peers/kafka.ts', name], environment.settings)
    undo.defer(() => child.stop())
    return child
  }
  const [ours, plain] = [await start('ours'), await start('kafkajs')]
  const run = (child: Child, inFlight: number) => () =>
    appendFor(child, { inFlight, seconds, environment })
  const samples = await interleave(
    peerTurns,
    levels.flatMap(({ inFlight }) => [
      { name: `ours ${inFlight}`, run: run(ours, inFlight) },
      { name: `plain ${inFlight}`, run: run(plain, inFlight) },
    ]),
  )
  return levels.map(({ inFlight }) =>
    costRatio({
      name: `appending a record of 1 KB over plain kafkajs's, ${inFlight} in flight`,
      log: environment.logName,
      ours: samples[`ours ${inFlight}`] ?? [],
      theirs: samples[`plain ${inFlight}`] ?? [],
    }),
  )
}

async function measureSessionRecords(
  environment: Environment,
  scale: Scale,
): Promise<Measurement[]> {
  const [emmett] = findPeers('@event-driven-io/emmett-postgresql', [{ args: ['emmett.mjs'] }])
  if (!emmett) return []
  await using undo = new AsyncDisposableStack()
  const own = async (starting: Promise<Child>) => {
    const child = await starting
    undo.defer(() => child.stop())
    return child
  }
  const server = await own(environment.startAllInOne())
  const store = await own(
    emmett.start({ DATABASE_URL: await createPeerDatabase(environment, 'emmett') }),
  )
  const { recordSessions: sessions, appendSeconds: seconds } = scale
  const recordsPerSession: number[] = []
  const variants = levels.flatMap(({ inFlight }): Variant<Round>[] => [
    {
      name: `ours ${inFlight}`,
      run: async () => {
        const cost = await costOfRecord(environment, { child: server, inFlight, sessions })
        recordsPerSession.push(cost.recordsPerSession)
        return cost
      },
    },
    {
      name: `theirs ${inFlight}`,
      run: () => appendFor(store, { inFlight, seconds, environment }),
    },
  ])
  const samples = await interleave(scale.peerTurns, variants)
  return levels.map(({ inFlight, sessionAim }) =>
    costRatio({
      name: `a record of a session over ${emmett.name}'s event of 1 KB, ${inFlight} in flight`,
      log: environment.logName,
      aim: atMost(sessionAim),
      ours: samples[`ours ${inFlight}`] ?? [],
      theirs: samples[`theirs ${inFlight}`] ?? [],
      details: { 'records a session': spreadOf(recordsPerSession).median },
    }),
  )
}

interface Appends {
  inFlight: number
  seconds: number
  environment: Environment
}

const doneSchema = z.object({ requests: z.int(), seconds: z.number() })

function appendFor(child: Child, { environment, ...round }: Appends): Promise<Round> {
  const work = async () => doneSchema.parse(await runRound(child, round))
  return measureRound({ child, storePids: environment.storePids, work })
}

interface Sessions {
  child: Child
  inFlight: number
  sessions: number
}

/** Returns the cost of complete sessions divided by the number of their records. */
async function costOfRecord(environment: Environment, run: Sessions) {
  const before = await countRecords(environment)
  const { details } = await costOfSessions({ environment, servers: [run.child], ...run })
  const after = await countRecords(environment)
  const recordsPerSession = (after.records - before.records) / (after.sessions - before.sessions)
  return {
    recordsPerSession,
    micros: (details['server ms'] * 1000) / recordsPerSession,
    storeMicros: (details['Postgres ms'] * 1000) / recordsPerSession,
    perSecond: details['sessions/s'] * recordsPerSession,
    peakBytes: memory(run.child.pid).peak,
  }
}

async function countRecords({ databaseUrl }: Environment) {
  const pool = createPool({ url: databaseUrl, max: 1 })
  const { rows } = await pool
    .query<{ records: number; sessions: number }>(
      `select (select count(*) from tidegate_log.records)::int as records,
         (select count(*) from read.sessions)::int as sessions`,
    )
    .finally(() => pool.end())
  return rows[0] ?? { records: 0, sessions: 0 }
}
