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
import { findRetentionCutoffs } from '../../projections/policies/queries.ts'
import { runRollUp } from '../../projections/sessions/roll-up.ts'
import { queueReadings } from '../../projections/webhooks/queries.ts'
import { eventTopics } from '../../schemas/events.ts'
import { purgeClaims } from '../collect/claims.ts'
import { purgeConsole, revokeOrphaned } from '../console/store.ts'
import { runFactsPublisher } from '../facts/publisher.ts'
import { runGraceScheduler } from '../organizations/grace-scheduler.ts'
import { runRetentionScheduler } from '../organizations/retention-scheduler.ts'
import { loadAttestedApps } from '../scoring/attestation/apps.ts'
import type { AttestationVerifier } from '../scoring/attestation/devices.ts'
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
import type { LocalDecisions } from './own-decisions.ts'
import type { Role } from './roles.ts'

export interface Running {
  stop(): Promise<void>
  status?(): PartitionStatus[]
  /** Rejects while the worker cannot work. */
  check?(): Promise<void>
}

export interface WorkerParts {
  roles: readonly Role[]
  network: NetworkSource
  registry: Registry
  /**
   * Key with which simulations under `tidegate dev` prove that they are simulated, so that they are scored as what they
   * play.
   */
  simulationKey?: SimulationKey | undefined
  /** Overrides for agent look-ups, in tests. */
  lookupOptions?: Partial<FetchOptions> | undefined
  /** Present with the role collect. */
  localDecisions: LocalDecisions | undefined
  undo: AsyncDisposableStack
}

/**
 * Starts the workers of the roles. They stop in reverse order: the projections last, to apply the last decisions of
 * scoring.
 */
export async function startWorkers(core: Core, parts: WorkerParts): Promise<Running[]> {
  const { roles, registry, undo } = parts
  const expired = countExpired(registry)
  const projectionRunners = roles.includes('projections')
    ? await startTogether(
        projections.map((projection) =>
          runProjection({ ...core, projection, onExpired: expired(projection.name) }),
        ),
      )
    : []
  undo.defer(() => stopTogether(projectionRunners))
  const prunable = roles.includes('projections')
    ? projections.filter(({ createPrune }) => createPrune)
    : []
  const pruners = prunable.map((projection) =>
    runPruner({ ...core, projection, findCutoffs: findRetentionCutoffs }),
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
  const cleanupJobs = [
    ...(roles.includes('api')
      ? [
          runGraceScheduler(core),
          runRetentionScheduler(core),
          runPurge(core, 'expired idempotency keys', purgeIdempotencyKeys),
          runConsolePurge(core, undo),
        ]
      : []),
    ...(roles.includes('collect') ? [runPurge(core, 'expired document claims', purgeClaims)] : []),
    ...(roles.includes('scoring')
      ? [
          runPurge(core, 'expired counting keys of learned answers', purgeCountingKeys),
          runPurge(core, 'expired agent lookups', purgeIdentity),
        ]
      : []),
  ]
  undo.defer(() => stopTogether(cleanupJobs))
  const webhookWorkers = roles.includes('webhooks') ? await startWebhooks(core, registry) : []
  undo.defer(() => stopTogether(webhookWorkers))
  return [...projectionRunners, ...scoring, ...webhookWorkers]
}

function countExpired(registry: Registry): (group: string) => (records: number) => void {
  const expired = createCounter(registry, {
    name: 'tidegate_consumer_expired_records_total',
    help: 'Records that expired before the consumer read them.',
    labels: { group: [...projections.map(({ name }) => name), 'scoring'] },
  })
  return (group) => (records) => expired.inc({ group }, records)
}

const hasFactsTopic = ({ config }: Core, roles: readonly Role[]): boolean =>
  config.KAFKA_BROKERS.length > 0 && roles.includes('projections')

/** Throws if a partition is stuck, naming it. */
export function requireNoneStopped(running: Running[]): void {
  const stopped = running
    .flatMap((worker) => worker.status?.() ?? [])
    .find((partition) => partition.stopped)
  if (stopped)
    throw new Error(
      `${stopped.topic}/${stopped.partition} is stuck at offset ${stopped.nextOffset}`,
    )
}

/** Rejects if a worker cannot work. */
export async function checkWorkers(running: Running[]): Promise<void> {
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
  { network, registry, simulationKey, lookupOptions, localDecisions, undo }: WorkerParts,
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
  // No private network is allowed, because agents choose the addresses that are fetched.
  const rules = createAddressRules([])
  const identity =
    core.config.AGENT_LOOKUPS === 'on'
      ? runIdentity({ ...core, rules, ...lookupOptions })
      : undefined
  const reportDecision = countDecisions(registry)
  const scoring = runScoring({
    ...core,
    network,
    learned,
    simulationKey,
    allowsMinimal,
    findTrusted,
    modelsAt,
    onDecided(decision) {
      reportDecision(decision)
      localDecisions?.add(decision)
    },
    lookups: identity,
    attestationVerifier: await loadAttestationVerifier(core, registry),
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
    ].map((worker) => Promise.resolve(worker)),
    scoring,
  ])
}

async function loadAttestationVerifier(
  { config }: Core,
  registry: Registry,
): Promise<AttestationVerifier | undefined> {
  const countResult = countAttestations(registry)
  const apps = loadAttestedApps(config)
  if (!apps) return undefined
  const { judgeAttestation } = await import('../scoring/attestation/judge.ts')
  return {
    apps,
    async judge(evidence) {
      const result = await judgeAttestation(evidence)
      countResult(result)
      return result
    },
  }
}

const purgeIntervalMs = 10 * 60 * 1000

// `purge` deletes a batch and returns its size. `what` names the rows in logs.
function runPurge(
  { pool, clock, logger }: Core,
  what: string,
  purge: (db: Db, now: number) => Promise<number>,
): Periodic {
  return runPeriodically({
    intervalMs: purgeIntervalMs,
    work: async () => (await purge(pool, clock())) > 0,
    onError: (err) => logger.error({ err }, `failed to delete ${what}; retrying`),
  })
}

// Revokes console sessions whose key or organization is gone, as soon as the read model shows that, and deletes expired
// ones.
function runConsolePurge(core: Core, undo: AsyncDisposableStack): Running {
  const purge = runPurge(core, 'ended console sessions', async (db, now) => {
    await revokeOrphaned(db, now)
    return purgeConsole(db, now)
  })
  undo.defer(core.applied.onAdvance('organizations', purge.wake))
  return purge
}

// Starts all or none: if one fails to start, the others are stopped.
async function startTogether<T extends Running>(starts: Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(starts)
  const started = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failed = results.find((result) => result.status === 'rejected')
  if (!failed) return started
  await stopTogether(started)
  throw failed.reason
}

async function stopTogether(running: Running[]): Promise<void> {
  await Promise.all(running.map((worker) => worker.stop()))
}
