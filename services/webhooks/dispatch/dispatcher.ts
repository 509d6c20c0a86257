import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../../../infra/config.ts'
import type { Keyring } from '../../../infra/crypto/keyring.ts'
import type { AppliedOffsets } from '../../../infra/event-store/applied.ts'
import { createCatchUpGate } from '../../../infra/event-store/catch-up.ts'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import type { DecideAs } from '../../../infra/event-store/decide.ts'
import { runPeriodically } from '../../../infra/flow/periodic.ts'
import { type Clock, type Random, randomHexId } from '../../../infra/ids.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import type { Tracing } from '../../../infra/otlp/port.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { createAddressRules } from '../../../infra/safe-http/addresses.ts'
import { createWebhookClient } from '../../../infra/safe-http/client.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { withTimeout } from '../../../infra/timing.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { createSigningSecrets } from '../deliveries/attempt.ts'
import { createEndpointHealth } from '../endpoints/endpoint-health.ts'
import { requeueDeliveries } from '../leases.ts'
import type { WebhookMeter } from '../metrics.ts'
import { createConcurrencyLimits } from './concurrency.ts'
import { deliver } from './deliver.ts'
import { createDispatch } from './dispatch.ts'
import { maintainLeases } from './lease-upkeep.ts'
import { createRecorder } from './recorder.ts'
import { tracedDelivery } from './traced-delivery.ts'

interface DispatcherOptions {
  config: Config
  databaseUrl: string
  log: EventLog
  codec: EventCodec
  applied: AppliedOffsets
  decideAs: DecideAs
  keyring: Keyring
  clock: Clock
  random: Random
  logger: Logger
  meter: WebhookMeter
  tracing?: Tracing | undefined
}

export interface RunningDispatcher {
  /** Rejects once deliveries could not be taken from the queue for 10 seconds. */
  check(): Promise<void>
  stop(): Promise<void>
}

/**
 * With `synchronous_commit = off`, a crash of PostgreSQL can lose the latest leases, whose deliveries may then be sent
 * twice. The planner settings suit a table with thousands of short-lived rows: an index scan marks dead entries and
 * stops at its limit, while a bitmap scan would fetch all of them each time, and a merge join would compare each
 * delivery with all leases that are due at the same moment.
 */
export const dispatchPoolOptions = {
  max: 4,
  applicationName: 'tidegate webhooks',
  queryTimeoutMs: 10_000,
  idleInTransactionMs: 15_000,
  settings: {
    synchronous_commit: 'off',
    enable_bitmapscan: 'off',
    enable_seqscan: 'off',
    enable_mergejoin: 'off',
  },
}

// Includes `organizations`, because deliveries of inactive organizations are skipped.
const readModels = [
  { projection: 'webhooks', topic: eventTopics.WebhookDeliveryAttempted },
  { projection: 'organizations', topic: eventTopics.OrganizationCreated },
]

// Due deliveries are taken every `pollMs` and after each wake-up, with at least `minGapMs` in between.
const minGapMs = 25
const pollMs = 500

/**
 * Sends due webhook deliveries until stopped. Any number of processes can run a dispatcher, because a delivery is
 * leased to one process at a time. Delivery is at least once: an attempt is repeated if the process dies before
 * recording it.
 */
export async function runDispatcher(options: DispatcherOptions): Promise<RunningDispatcher> {
  const { config, applied, logger } = options
  const pool = createPool({ url: options.databaseUrl, ...dispatchPoolOptions })
  const rules = createAddressRules(config.WEBHOOK_ALLOWED_NETWORKS)
  const client = createWebhookClient({ rules, timeoutMs: config.WEBHOOK_TIMEOUT_MS })
  const stopping = new AbortController()
  const ownResources = {
    owner: randomHexId('dispatcher', options.random),
    pool,
    client,
    db: pool,
    signal: stopping.signal,
  }
  const shared = { ...options, ...ownResources, leaseMs: config.WEBHOOK_LEASE_MS }
  const stopRecording = new AbortController()
  const recorder = createRecorder({ ...shared, signal: stopRecording.signal })
  const endpointHealth = createEndpointHealth(shared)
  const secrets = createSigningSecrets(options.keyring)
  const deliverDeps = { ...shared, secrets, waitsSeconds: config.WEBHOOK_RETRY_SECONDS }
  const dispatch = createDispatch({
    ...shared,
    limits: createConcurrencyLimits(),
    catchUpGate: createCatchUpGate({ ...shared, readModels }),
    deliver: tracedDelivery((job, canSend) => deliver(deliverDeps, job, canSend), options.tracing),
    recorder,
    endpointHealth,
    onFree: () => loop.wake(),
  })
  const health = createDispatchHealth(logger)
  const loop = runPeriodically({
    intervalMs: pollMs,
    minIntervalMs: minGapMs,
    async work() {
      await dispatch.takeDue()
      health.succeeded()
    },
    onError: health.failed,
  })
  const stopListening = applied.onAdvance('webhooks', () => loop.wake())
  const leaseUpkeep = maintainLeases({ ...shared, dispatch, onReleased: () => loop.wake() })

  /**
   * Waits for requests in flight, then aborts the rest and requeues their deliveries. Aborted requests are not
   * recorded, because they would use up attempts of the retry schedule. Deliveries are requeued only after their
   * requests have ended, so that two requests never overlap. A finished request that could not be recorded in time
   * keeps its lease, because its record may have reached the log.
   */
  async function drain(): Promise<void> {
    await waitUntil(() => dispatch.inFlight().length === 0, drainTimeoutsMs.requests)
    const deliveryIds = dispatch.abandonRequests()
    await client.close()
    if (deliveryIds.length > 0) {
      logger.info(
        { deliveries: deliveryIds.length },
        'webhook requests aborted at shutdown; they will be retried',
      )
      const requeued = requeueDeliveries(pool, { ...ownResources, deliveryIds })
      await withTimeout(requeued, drainTimeoutsMs.requeue).catch(() => {})
    }
    await waitUntil(() => dispatch.inFlight().length === 0, drainTimeoutsMs.records)
    await waitBriefly(endpointHealth.idle())
    stopRecording.abort()
  }

  return {
    check: health.check,
    async stop() {
      stopping.abort()
      stopListening()
      await waitBriefly(loop.stop())
      await drain()
      await waitBriefly(leaseUpkeep.stop())
      await waitBriefly(pool.end())
    },
  }
}

function waitBriefly(ending: Promise<void>): Promise<void> {
  return withTimeout(ending, 300).catch(() => {})
}

// The sum must be below the shutdown timeout of the server.
const drainTimeoutsMs = { requests: 1000, requeue: 300, records: 500 }
const checkEveryMs = 10

async function waitUntil(condition: () => boolean, ms: number): Promise<void> {
  const until = performance.now() + ms
  while (!condition() && performance.now() < until) await delay(checkEveryMs)
}

const notReadyAfterMs = 10_000

export function createDispatchHealth(logger: Logger) {
  let failingSince: number | undefined
  return {
    succeeded() {
      if (failingSince !== undefined) logger.info('resumed claiming webhook deliveries')
      failingSince = undefined
    },
    failed(err: unknown) {
      if (failingSince === undefined)
        logger.warn({ err }, 'failed to take webhook deliveries; retrying')
      failingSince ??= performance.now()
    },
    async check(): Promise<void> {
      if (failingSince === undefined || performance.now() - failingSince < notReadyAfterMs) return
      throw new Error('cannot take webhook deliveries from the queue')
    },
  }
}
