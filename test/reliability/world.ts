import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { type Owner, operator } from '../support/cluster.ts'
import {
  createOwnDatabase,
  type DebianPostgres,
  startDebianPostgres,
} from '../support/debian-postgres.ts'
import { type RoleProcesses, readBack, startRoles } from '../support/roles.ts'
import { startTraffic } from '../support/session-traffic.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { type KafkaCluster, startKafkaCluster } from './kafka-cluster.ts'
import { type Count, recordResult } from './report.ts'

export interface World {
  postgres: DebianPostgres
  postgresProxy: TcpProxy
  kafka: KafkaCluster
  roles: RoleProcesses
  owner: Owner
  settings: Record<string, string>
  /**
   * Sends sessions while `breaks` breaks something and mends it again, and counts what became of them. `name` is its line
   * in docs/reports/reliability.md; `breaks` returns how often it broke something.
   */
  under(name: string, breaks: () => Promise<number>): Promise<void>
  stop(): Promise<void>
}

interface WorldOptions {
  seed: string
  /** Folder for the data of Postgres and Kafka. */
  places?: { postgres?: string; kafka?: string }
  /** For every role, as a preloaded library needs. */
  env?: Record<string, string>
}

/** Three brokers with TLS and SCRAM, Debian's PostgreSQL with TLS, each role a process; proxies between. */
export async function openWorld({ seed, places = {}, env = {} }: WorldOptions): Promise<World> {
  const [postgres, kafka] = await Promise.all([
    startDebianPostgres(places.postgres ? { within: places.postgres } : {}),
    startKafkaCluster(places.kafka ? { within: places.kafka } : {}),
  ])
  const postgresProxy = await startTcpProxy(postgres.url)
  const settings = {
    ...kafka.settings,
    TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
    DATABASE_URL: await createOwnDatabase(postgres, postgresProxy.url),
    // `make faults` makes no bundle.
    FROM_SOURCE: '1',
    ...env,
  }
  const roles = await startRoles(settings)
  const owner = await operator(settings).organization()
  const finished: string[] = []
  return {
    postgres,
    postgresProxy,
    kafka,
    roles,
    owner,
    settings,
    under: (name, breaks) => runFault({ name, breaks, seed, roles, owner, finished }),
    async stop() {
      await roles.stop()
      await postgresProxy.close()
      await Promise.all([kafka.stop(), postgres.stop()])
    },
  }
}

interface Fault {
  name: string
  breaks: () => Promise<number>
  seed: string
  roles: RoleProcesses
  owner: Owner
  /** Sessions of all faults so far, because a later fault must not lose them. */
  finished: string[]
}

const atOnce = 3
const enough = 15

async function runFault(fault: Fault): Promise<void> {
  const { name, breaks, seed, roles, owner, finished } = fault
  const began = Date.now()
  const traffic = startTraffic({
    baseUrl: () => roles.url('collect'),
    publishableKey: owner.publishable.key,
    seed: `${seed} ${name}`,
    sessions: Number.POSITIVE_INFINITY,
    atOnce,
    allowsNoAnswer: true,
  })
  // Some before, and some after.
  await traffic.reached(enough)
  const faults = await breaks()
  await traffic.reached(traffic.finished.length + enough)
  traffic.stop()
  await traffic.done
  finished.push(...traffic.finished)
  const { lost, listed } = await readBack(roles.url('api'), owner, traffic.finished)
  const count: Count = {
    faults,
    sessions: traffic.finished.length,
    lost: lost.length,
    refused: traffic.answers['503'] ?? 0,
    unanswered: traffic.answers['no answer'] ?? 0,
  }
  recordResult({ name, seed, count, seconds: Math.round((Date.now() - began) / 1000) })
  expect({ failed: traffic.failed, lost, givenUp: traffic.givenUp }).toEqual({
    failed: [],
    lost: [],
    givenUp: [],
  })
  // A session that its client gave up may be there, too; there is none of that.
  expect(listed).toBe(finished.length)
}
