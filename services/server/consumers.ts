import type { Registry } from 'prom-client'
import { createCounter } from '../../infra/counter.ts'
import type { PartitionStatus } from '../../infra/event-store/consumer.ts'
import { runPruner } from '../../infra/event-store/prune.ts'
import { runProjection } from '../../infra/event-store/runner.ts'
import { type Periodic, runPeriodically } from '../../infra/flow/periodic.ts'
import { purgeIdempotencyKeys } from '../../infra/idempotency/store.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { createAddressRules } from '../../infra/safe-http/addresses.ts'
import type { SimulationKey } from '../../infra/wire/collect/simulation.ts'
import { findEndedData } from '../../projections/policies/queries.ts'
import { runRollUp } from '../../projections/sessions/roll-up.ts'
import { queueReadings } from '../../projections/webhooks/queries.ts'
import { eventTopics } from '../../schemas/events.ts'
import { purgeClaims } from '../collect/claims.ts'
import { endStranded, purgeConsole } from '../console/store.ts'
import { runFactsPublisher } from '../facts/publisher.ts'
import { runGraceScheduler } from '../organizations/grace-scheduler.ts'
import { runRetentionScheduler } from '../organizations/retention-scheduler.ts'
import { loadAttestedApps } from '../scoring/attestation/apps.ts'
import type { Attesting } from '../scoring/attestation/devices.ts'
import type { FetchOptions } from '../scoring/identity/fetch.ts'
import { runIdentity } from '../scoring/identity/run.ts'
import { purgeIdentity } from '../scoring/identity/tables.ts'
import { followTrusted } from '../scoring/identity/trusted.ts'
import { purgeCountingKeys, runLearning } from '../scoring/learned.ts'
import { countAttestations, countDecisions, measureLearning } from '../scoring/metrics.ts'
import { followMinimalMode } from '../scoring/minimal-mode.ts'
import { followModels } from '../scoring/model/follow.ts'
import { runSessionScheduler } from '../scoring/scheduler.ts'
import { runVisitorPruner } from '../scoring/visitors/prune.ts'
import { runScoring } from '../scoring/worker.ts'
import { runDispatcher } from '../webhooks/dispatch/dispatcher.ts'
import { measureWebhooks } from '../webhooks/metrics.ts'
import { runPlanner } from '../webhooks/planner/planner.ts'
import { type Core, projections } from './dependencies.ts'
import type { OwnDecisions } from './own-decisions.ts'
import type { Role } from './roles.ts'

export interface Running {
  stop(): Promise<void>
  status?(): PartitionStatus[]
  /** Rejects while the worker cannot do its work. */
  check?(): Promise<void>
}

export interface WorkerParts {
  roles: readonly Role[]
  network: NetworkSource
  registry: Registry
  /** The key by which scripts of development prove that they are simulated, so that they count as what they play. */
  simulationKey?: SimulationKey | undefined
  /** How agents are looked up, where that is not as on the internet. */
  lookingUp?: Partial<FetchOptions> | undefined
  /** Where the process hands off, too. */
  ownDecisions: OwnDecisions | undefined
  undo: AsyncDisposableStack
}

/** Scoring is stopped before the projections, so that what it decided last is still applied. */
export async function startWorkers(core: Core, parts: WorkerParts): Promise<Running[]> {
  const { roles, registry, undo } = parts
  const expired = countExpired(registry)
  const applying = roles.includes('projections')
    ? await startTogether(
        projections.map((projection) =>
          runProjection({ ...core, projection, onExpired: expired(projection.name) }),
        ),
      )
    : []
  undo.defer(() => stopTogether(applying))
  const pruning = roles.includes('projections')
    ? projections.filter(({ createPrune }) => createPrune)
    : []
  const pruners = pruning.map((projection) =>
    runPruner({ ...core, projection, findEnded: findEndedData }),
  )
  if (roles.includes('projections')) pruners.push(runRollUp(core))
  undo.defer(() => stopTogether(pruners))
  for (const pruner of pruners) undo.defer(core.applied.onAdvance('policies', pruner.wake))
  const scoring = roles.includes('scoring')
    ? await startScoring({ ...core, onExpired: expired('scoring') }, parts)
    : []
  undo.defer(() => stopTogether(scoring))
  const facts = hasFactsTopic(core, roles) ? [runFactsPublisher(core)] : []
  undo.defer(() => stopTogether(facts))
  const oldCounts = 'keys that answers of months before were counted under'
  const tidying = [
    ...(roles.includes('api')
      ? [
          runGraceScheduler(core),
          runRetentionScheduler(core),
          runPurge(core, 'expired Idempotency-Keys', purgeIdempotencyKeys),
          runConsolePurge(core, undo),
        ]
      : []),
    ...(roles.includes('collect')
      ? [runPurge(core, 'claims of documents that ended', purgeClaims)]
      : []),
    ...(roles.includes('scoring')
      ? [
          runPurge(core, oldCounts, purgeCountingKeys),
          runPurge(core, 'what was looked up of agents', purgeIdentity),
        ]
      : []),
  ]
  undo.defer(() => stopTogether(tidying))
  const sending = roles.includes('webhooks') ? await startWebhooks(core, registry) : []
  undo.defer(() => stopTogether(sending))
  return [...applying, ...scoring, ...sending]
}

function countExpired(registry: Registry): (group: string) => (records: number) => void {
  const expired = createCounter(registry, {
    name: 'tidegate_consumer_expired_records_total',
    help: 'Records that expired before a consumer read them.',
    labels: { group: [...projections.map(({ name }) => name), 'scoring'] },
  })
  return (group) => (records) => expired.inc({ group }, records)
}

const hasFactsTopic = ({ config }: Core, roles: readonly Role[]): boolean =>
  config.KAFKA_BROKERS.length > 0 && roles.includes('projections')

export function requireNoneStopped(running: Running[]): void {
  const stopped = running
    .flatMap((worker) => worker.status?.() ?? [])
    .find((partition) => partition.stopped)
  if (stopped)
    throw new Error(
      `${stopped.topic}/${stopped.partition} stands still at offset ${stopped.nextOffset}`,
    )
}

export async function allWork(running: Running[]): Promise<void> {
  await Promise.all(running.map((worker) => worker.check?.()))
}

function startWebhooks(core: Core, registry: Registry): Promise<Running[]> {
  const { pool, clock } = core
  const meter = measureWebhooks(registry, async () => {
    const now = clock()
    return { ...(await queueReadings(pool, now)), now }
  })
  return startTogether<Running>([runPlanner(core), runDispatcher({ ...core, meter })])
}

async function startScoring(
  core: Core & { onExpired: (records: number) => void },
  { network, registry, simulationKey, lookingUp, ownDecisions, undo }: WorkerParts,
): Promise<Running[]> {
  const pruner = runVisitorPruner(core)
  undo.defer(core.applied.onAdvance('policies', pruner.wake))
  const learning = runLearning(core)
  const minimal = await followMinimalMode(core)
  const { allowsMinimal } = minimal
  const { findTrusted, ...trusted } = await followTrusted(core)
  const models = await followModels(core)
  const { modelsAt } = models
  const { learned } = learning
  measureLearning(registry, learning.overview)
  undo.defer(
    core.applied.onAdvance('answers', ({ topic }) => {
      if (topic === eventTopics.EngineAnswersLearned) learning.wake()
    }),
  )
  // No network is excepted, because agents name the addresses that are fetched.
  const rules = createAddressRules([])
  const identity =
    core.config.AGENT_LOOKUPS === 'on' ? runIdentity({ ...core, rules, ...lookingUp }) : undefined
  const count = countDecisions(registry)
  const scoring = runScoring({
    ...core,
    network,
    learned,
    simulationKey,
    allowsMinimal,
    findTrusted,
    modelsAt,
    onDecided(decision) {
      count(decision)
      ownDecisions?.note(decision)
    },
    lookups: identity,
    attesting: await loadAttesting(core, registry),
  })
  return startTogether<Running>([
    ...[
      learning,
      minimal,
      trusted,
      models,
      pruner,
      runSessionScheduler(core),
      ...(identity ? [identity] : []),
    ].map((started) => Promise.resolve(started)),
    scoring,
  ])
}

async function loadAttesting({ config }: Core, registry: Registry): Promise<Attesting | undefined> {
  const count = countAttestations(registry)
  const apps = loadAttestedApps(config)
  if (!apps) return undefined
  const { judgeAttestation } = await import('../scoring/attestation/judge.ts')
  return {
    apps,
    async judge(evidence) {
      const found = await judgeAttestation(evidence)
      count(found)
      return found
    },
  }
}

const purgeIntervalMs = 10 * 60 * 1000

// `purge` deletes some of them, and returns how many.
function runPurge(
  { pool, clock, logger }: Core,
  what: string,
  purge: (db: Db, now: number) => Promise<number>,
): Periodic {
  return runPeriodically({
    intervalMs: purgeIntervalMs,
    work: async () => (await purge(pool, clock())) > 0,
    onError: (err) => logger.error({ err }, `${what} were not deleted; the next run tries again`),
  })
}

// Sessions of the console end for good with their key or organization, soon after the read model shows it.
function runConsolePurge(core: Core, undo: AsyncDisposableStack): Running {
  const purging = runPurge(core, 'ended console sessions', async (db, now) => {
    await endStranded(db, now)
    return purgeConsole(db, now)
  })
  undo.defer(core.applied.onAdvance('organizations', purging.wake))
  return purging
}

// All or none: when one does not start, the others are stopped.
async function startTogether<T extends Running>(starting: Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(starting)
  const started = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failed = results.find((result) => result.status === 'rejected')
  if (!failed) return started
  await stopTogether(started)
  throw failed.reason
}

async function stopTogether(running: Running[]): Promise<void> {
  await Promise.all(running.map((worker) => worker.stop()))
}
