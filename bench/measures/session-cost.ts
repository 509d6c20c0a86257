import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { createPool } from '../../infra/postgres/pool.ts'
import type { Child } from '../child.ts'
import { measureRound } from '../compare.ts'
import type { Environment } from '../environment.ts'
import { runLoad } from '../load.ts'
import type { Measurement } from '../measurement.ts'
import { deal, fixedSequence } from '../prepare.ts'
import { cpuMicros, treeCpuMicros } from '../procfs.ts'
import { interleave } from '../rounds.ts'
import type { Scale } from '../scale.ts'
import { spreadOf } from '../stats.ts'
import { appendsOf, connections, prepareDocuments } from './collect.ts'
import { sendTraffic, type Traffic } from './traffic.ts'

/**
 * Targets for the cost of a session, stores included, in floor requests. Milliseconds would depend more on the
 * machine, since they differ fourfold between machines.
 */
const levels = [
  { inFlight: 4, aim: 106 },
  { inFlight: 16, aim: 64 },
  { inFlight: 64, aim: 34 },
] as const

/** Postgres publishes transaction counts with a delay of up to a second. */
const countsShownMs = 1500

/**
 * Measures the CPU time, transactions, statements and bytes of a session from its opening to its result. Statements
 * are counted by pg_stat_statements, including begin and commit.
 */
export async function measureSessionCost(traffic: Traffic, scale: Scale): Promise<Measurement[]> {
  const { costSessions: sessions } = scale
  const floor = await floorCost(traffic, scale)
  const measurements: Measurement[] = []
  for (const { inFlight, aim } of levels) {
    const { total, details } = await costOfSessions({
      ...traffic,
      servers: [traffic.child],
      inFlight,
      sessions,
    })
    const sessionMs = total + (details['Kafka ms'] ?? 0)
    measurements.push({
      name: `processor time a session over the floor's request, ${inFlight} in flight`,
      log: traffic.environment.logName,
      unit: 'ratio',
      value: spreadOf(floor.map((ms) => sessionMs / ms)),
      // Without a target on Kafka, where the floor's work is done by the brokers instead of Postgres.
      ...(traffic.environment.logName === 'embedded' && {
        aim: { direction: 'at most' as const, value: aim },
      }),
      details: { 'session ms': sessionMs, 'floor ms': spreadOf(floor).median, ...details },
    })
  }
  return measurements
}

/** Returns the milliseconds of CPU time that the floor and the stores take to append a batch, by round. */
async function floorCost(traffic: Traffic, scale: Scale): Promise<number[]> {
  const { environment } = traffic
  const { live } = await environment.credentials()
  const target = { baseUrl: traffic.child.url, publishableKey: live.publishable_key }
  const appends = appendsOf(await prepareDocuments(target, scale))
  const floor = await environment.startFloor()
  const run = () => runLoad(floor.url, deal(appends, connections).map(fixedSequence))
  try {
    const { floor: rounds = [] } = await interleave(scale.turns, [
      {
        name: 'floor',
        run: () => measureRound({ child: floor, storePids: environment.storePids, work: run }),
      },
    ])
    return rounds.map(({ micros, storeMicros }) => (micros + storeMicros) / 1000)
  } finally {
    await floor.stop()
  }
}

interface CostOptions extends Traffic {
  /** Processes whose CPU time is added up. */
  servers: Child[]
  inFlight: number
  sessions: number
}

/** CPU milliseconds. `total` is for all servers and Postgres, `byServer` for each server. */
export async function costOfSessions({ servers, inFlight, sessions, ...traffic }: CostOptions) {
  const { environment } = traffic
  const load = { concurrency: inFlight, seed: `cost ${inFlight} ${servers.length}` }
  await sendTraffic(traffic, { ...load, sessions: inFlight * 4, seed: `${load.seed} warm-up` })
  const before = await readCounts(environment, servers)
  const serversBefore = servers.map(({ pid }) => cpuMicros(pid))
  const { sessionsPerSecond, latency } = await sendTraffic(traffic, { ...load, sessions })
  const byServer = servers.map(
    ({ pid }, i) => (cpuMicros(pid) - (serversBefore[i] ?? 0)) / 1000 / sessions,
  )
  const after = await readCounts(environment, servers)
  const cost = (name: keyof Counts) => (after[name] - before[name]) / sessions
  const details = {
    'server ms': cost('serverMs'),
    'Postgres ms': cost('postgresMs'),
    ...(environment.kafkaPid === undefined ? {} : { 'Kafka ms': cost('kafkaMs') }),
    transactions: cost('transactions'),
    statements: cost('statements'),
    'WAL KB': cost('walBytes') / 1024,
    'database KB': cost('databaseBytes') / 1024,
    'log KB': cost('logBytes') / 1024,
    'sessions/s': sessionsPerSecond,
    'hand-off p50 ms': latency.result.p50,
    'hand-off p99 ms': latency.result.p99,
  }
  return { total: cost('serverMs') + cost('postgresMs'), byServer, details }
}

interface Counts {
  serverMs: number
  postgresMs: number
  kafkaMs: number
  transactions: number
  statements: number
  walBytes: number
  /** Size of the database without the embedded log. */
  databaseBytes: number
  logBytes: number
}

async function readCounts(environment: Environment, servers: Child[]): Promise<Counts> {
  await delay(countsShownMs)
  const { postgresPid, kafkaPid, databaseUrl } = environment
  const counted = {
    serverMs: servers.reduce((sum, { pid }) => sum + cpuMicros(pid), 0) / 1000,
    postgresMs: treeCpuMicros(postgresPid) / 1000,
    kafkaMs: kafkaPid === undefined ? 0 : cpuMicros(kafkaPid) / 1000,
  }
  const pool = createPool({ url: databaseUrl, max: 1, applicationName: 'bench' })
  try {
    return { ...counted, ...(await readDatabase(pool)), logBytes: await environment.logBytes(pool) }
  } finally {
    await pool.end()
  }
}

type DatabaseCounts = Pick<Counts, 'transactions' | 'statements' | 'walBytes' | 'databaseBytes'>

async function readDatabase(pool: pg.Pool): Promise<DatabaseCounts> {
  await pool.query('create extension if not exists pg_stat_statements')
  const { rows } = await pool.query<DatabaseCounts>(
    `select (select xact_commit + xact_rollback from pg_stat_database where datname = current_database())::float8
         as transactions,
       (select coalesce(sum(calls), 0) from pg_stat_statements where toplevel)::float8 as statements,
       (pg_current_wal_insert_lsn() - '0/0')::float8 as "walBytes",
       (select coalesce(sum(pg_total_relation_size(c.oid)), 0) from pg_class c join pg_namespace n
         on n.oid = c.relnamespace
         where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema', 'tidegate_log'))::float8
         as "databaseBytes"`,
  )
  const [row] = rows
  if (!row) throw new Error('Postgres gave no counts')
  return row
}
