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
import { readQueueStats } from '../../projections/webhooks/queries.ts'
import { eventTopics } from '../../schemas/events.ts'
import { purgeClaims } from '../collect/claims.ts'
import { purgeConsoleSessions, revokeOrphaned } from '../console/store.ts'
import { runFactsPublisher } from '../facts/publisher.ts'
import { revokeEndedKeys } from '../organizations/key-end-scheduler.ts'
import { recordDataExpiry } from '../organizations/retention-scheduler.ts'
import { checkAlerts } from '../readback/views/alert-checks.ts'
import { purgeViewsOfDeleted } from '../readback/views/store.ts'
import { loadAttestedApps } from '../scoring/attestation/apps.ts'
import type { AttestationVerifier } from '../scoring/attestation/devices.ts'
import type { FetchOptions } from '../scoring/identity/fetch.ts'
import { runAgentLookups } from '../scoring/identity/run.ts'
import { purgeExpiredLookups } from '../scoring/identity/tables.ts'
import { followTrustedDirectories } from '../scoring/identity/trusted-directories.ts'
import { followLearnedAnswers, purgeDigestKeys } from '../scoring/learned.ts'
import {
  createAttestationCounter,
  createDecisionCounter,
  registerLearningGauges,
} from '../scoring/metrics.ts'
import { followMinimalMode } from '../scoring/minimal-mode.ts'
import { followModels } from '../scoring/model/follow.ts'
import { runSessionScheduler } from '../scoring/scheduler.ts'
import { runVisitorPruner } from '../scoring/visitors/prune.ts'
import { runScoring } from '../scoring/worker.ts'
import { runDispatcher } from '../webhooks/dispatch/dispatcher.ts'
import { raiseKeyExpiries } from '../webhooks/key-expiry.ts'
import { createWebhookMeter } from '../webhooks/metrics.ts'
import { runPlanner } from '../webhooks/planner/planner.ts'
import { createRaise } from '../webhooks/raise.ts'
import { type Core, projections } from './dependencies.ts'
import type { LocalDecisions } from './local-decisions.ts'
import type { Role } from './roles.ts'

export interface RunningWorker {
  stop(): Promise<void>
  status?(): PartitionStatus[]
  /** Rejects while the worker cannot work. */
  check?(): Promise<void>
}

export interface WorkerParts {
  roles: readonly Role[]
  network: NetworkSource
  registry: Registry
  /** Key that authenticates simulations under `tidegate dev`, which are scored as the clients that they simulate. */
  simulationKey?: SimulationKey | undefined
  /** Overrides for agent lookups, in tests. */
  lookupOptions?: Partial<FetchOptions> | undefined
  /** Present with the role collect. */
  localDecisions: LocalDecisions | undefined
  undo: AsyncDisposableStack
}

/**
 * Starts the workers of the roles. They stop in reverse order: the projections last, so that they apply the last
 * decisions of scoring.
 */
export async function startWorkers(core: Core, parts: WorkerParts): Promise<RunningWorker[]> {
  const { roles, registry, undo } = parts
  const expired = createExpiredCounter(registry)
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
          runJob(core, { seconds: 5, job: 'revoke ended API keys', run: revokeEndedKeys }),
          runJob(core, { seconds: 600, job: 'record data expiry', run: recordDataExpiry }),
          runJob(core, { seconds: 60, job: 'check alerts', run: checkAlertsAndRaise }),
          runPurge(core, 'expired idempotency keys', purgeIdempotencyKeys),
          runConsolePurge(core, undo),
        ]
      : []),
    ...(roles.includes('collect') ? [runPurge(core, 'expired document claims', purgeClaims)] : []),
    ...(roles.includes('scoring')
      ? [
          runPurge(core, 'expired counting keys of learned answers', purgeDigestKeys),
          runPurge(core, 'expired agent lookups', purgeExpiredLookups),
        ]
      : []),
    ...(roles.includes('webhooks')
      ? [runJob(core, { seconds: 60, job: 'raise key.expiring', run: raiseKeyExpiries })]
      : []),
  ]
  undo.defer(() => stopTogether(cleanupJobs))
  const webhookWorkers = roles.includes('webhooks') ? await startWebhooks(core, registry) : []
  undo.defer(() => stopTogether(webhookWorkers))
  return [...projectionRunners, ...scoring, ...webhookWorkers]
}

function createExpiredCounter(registry: Registry): (group: string) => (records: number) => void {
  const expired = createCounter(registry, {
    name: 'tidegate_consumer_expired_records_total',
    help: 'Records that expired before the consumer read them.',
    labels: { group: [...projections.map(({ name }) => name), 'scoring'] },
  })
  return (group) => (records) => expired.inc({ group }, records)
}

const hasFactsTopic = ({ config }: Core, roles: readonly Role[]): boolean =>
  config.KAFKA_BROKERS.length > 0 && roles.includes('projections')

/** Throws an error that names the partition if one is stuck. */
export function requireNoStuckPartition(running: RunningWorker[]): void {
  const stopped = running
    .flatMap((worker) => worker.status?.() ?? [])
    .find((partition) => partition.stopped)
  if (stopped)
    throw new Error(
      `${stopped.topic}/${stopped.partition} is stuck at offset ${stopped.nextOffset}`,
    )
}

/** Rejects if a worker cannot work. */
export async function checkWorkers(running: RunningWorker[]): Promise<void> {
  await Promise.all(running.map((worker) => worker.check?.()))
}

function startWebhooks(core: Core, registry: Registry): Promise<RunningWorker[]> {
  const { pool, clock } = core
  const meter = createWebhookMeter(registry, async () => {
    const now = clock()
    return { ...(await readQueueStats(pool, now)), now }
  })
  return startTogether<RunningWorker>([runPlanner(core), runDispatcher({ ...core, meter })])
}

async function startScoring(
  core: Core & { onExpired: (records: number) => void },
  { network, registry, simulationKey, lookupOptions, localDecisions, undo }: WorkerParts,
): Promise<RunningWorker[]> {
  const pruner = runVisitorPruner(core)
  undo.defer(core.applied.onAdvance('policies', pruner.wake))
  const learning = followLearnedAnswers(core)
  const minimal = await followMinimalMode(core)
  const { allowsMinimalMode } = minimal
  const { findTrusted, ...trusted } = await followTrustedDirectories(core)
  const models = await followModels(core)
  const { modelsAt } = models
  const { learned } = learning
  registerLearningGauges(registry, learning.overview)
  undo.defer(
    core.applied.onAdvance('answers', ({ topic }) => {
      if (topic === eventTopics.EngineAnswersLearned) learning.wake()
    }),
  )
  // Allows no private network, because agents choose the addresses that are fetched.
  const rules = createAddressRules([])
  const identity =
    core.config.AGENT_LOOKUPS === 'on'
      ? runAgentLookups({ ...core, rules, ...lookupOptions })
      : undefined
  const reportDecision = createDecisionCounter(registry)
  const scoring = runScoring({
    ...core,
    network,
    learned,
    simulationKey,
    allowsMinimalMode,
    findTrusted,
    modelsAt,
    onDecided(decision) {
      reportDecision(decision)
      localDecisions?.add(decision)
    },
    lookups: identity,
    attestationVerifier: await loadAttestationVerifier(core, registry),
  })
  return startTogether<RunningWorker>([
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
  const countResult = createAttestationCounter(registry)
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

const checkAlertsAndRaise = (core: Core) => checkAlerts({ ...core, raise: createRaise(core) })

interface Job {
  /** Interval. */
  seconds: number
  /** Name in logs. */
  job: string
  /** Does a batch and returns its size. Runs again at once until it is 0. */
  run: (core: Core) => Promise<number>
}

function runJob(core: Core, { seconds, job, run }: Job): Periodic {
  return runPeriodically({
    intervalMs: seconds * 1000,
    work: async () => (await run(core)) > 0,
    onError: (err) => core.logger.error({ err }, `failed to ${job}; retrying`),
  })
}

// `purge` deletes a batch and returns its size. `rowsText` describes the rows in logs.
function runPurge(
  core: Core,
  rowsText: string,
  purge: (db: Db, now: number) => Promise<number>,
): Periodic {
  const run = () => purge(core.pool, core.clock())
  return runJob(core, { seconds: 600, job: `delete ${rowsText}`, run })
}

// Deletes expired console sessions and views of deleted organizations, and revokes sessions whose key or organization is
// gone once the read model shows it.
function runConsolePurge(core: Core, undo: AsyncDisposableStack): RunningWorker {
  const purge = runPurge(core, 'ended console sessions and orphaned views', async (db, now) => {
    await revokeOrphaned(db, now)
    await purgeViewsOfDeleted(db)
    return purgeConsoleSessions(db, now)
  })
  undo.defer(core.applied.onAdvance('organizations', purge.wake))
  return purge
}

// Starts all or none: if one fails, stops the others.
async function startTogether<T extends RunningWorker>(starts: Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(starts)
  const started = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failed = results.find((result) => result.status === 'rejected')
  if (!failed) return started
  await stopTogether(started)
  throw failed.reason
}

async function stopTogether(running: RunningWorker[]): Promise<void> {
  await Promise.all(running.map((worker) => worker.stop()))
}
