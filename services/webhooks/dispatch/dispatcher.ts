import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../../../infra/config.ts'
import type { Keyring } from '../../../infra/crypto/keyring.ts'
import type { AppliedOffsets } from '../../../infra/event-store/applied.ts'
import { createCatchUpGate } from '../../../infra/event-store/catch-up.ts'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import type { DecideAs } from '../../../infra/event-store/decide.ts'
import { runPeriodically } from '../../../infra/flow/periodic.ts'
import { type Clock, hexId, type Random } from '../../../infra/ids.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import type { Tracing } from '../../../infra/otlp/port.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { createAddressRules } from '../../../infra/safe-http/addresses.ts'
import { createWebhookClient } from '../../../infra/safe-http/client.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { withTimeout } from '../../../infra/timing.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { createSigningSecrets } from '../deliveries/attempt.ts'
import { createEndpointHealth } from '../endpoints/give-up.ts'
import { requeueDeliveries } from '../leases.ts'
import type { WebhookMeter } from '../metrics.ts'
import { createConcurrencyLimits } from './concurrency.ts'
import { deliver } from './deliver.ts'
import { maintainLeases } from './keep-leases.ts'
import { createRecorder } from './recorder.ts'
import { tracedDelivery } from './traced-delivery.ts'
import { createDispatch } from './work.ts'

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
 * Leases may be lost when PostgreSQL crashes (synchronous_commit = off), but only together with every later write. The
 * planner settings suit a table with thousands of short-lived rows: an index scan marks dead entries and stops at its
 * limit, while a bitmap scan would fetch all of them each time. A merge join would compare each delivery with all
 * leases that are due at the same moment.
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

// `organizations` too, because deliveries of inactive organizations are skipped.
const readModels = [
  { projection: 'webhooks', topic: eventTopics.WebhookDeliveryAttempted },
  { projection: 'organizations', topic: eventTopics.OrganizationCreated },
]

// Due deliveries are taken every `pollMs`, and after a wake-up, but at least `gapMs` after the last take.
const gapMs = 25
const pollMs = 500

/**
 * Sends due webhook deliveries until stopped. Any number of processes may run a dispatcher, because a delivery is
 * leased to one process at a time. Delivery is at least once: an attempt is repeated if its process dies before the
 * attempt is on the log.
 */
export async function runDispatcher(options: DispatcherOptions): Promise<RunningDispatcher> {
  const { config, applied, logger } = options
  const pool = createPool({ url: options.databaseUrl, ...dispatchPoolOptions })
  const rules = createAddressRules(config.WEBHOOK_ALLOWED_NETWORKS)
  const client = createWebhookClient({ rules, timeoutMs: config.WEBHOOK_TIMEOUT_MS })
  const stopping = new AbortController()
  const lessee = {
    owner: hexId('dispatcher', options.random),
    pool,
    client,
    db: pool,
    signal: stopping.signal,
  }
  const shared = { ...options, ...lessee, leaseMs: config.WEBHOOK_LEASE_MS }
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
  const health = createWorkHealth(logger)
  const loop = runPeriodically({
    intervalMs: pollMs,
    minIntervalMs: gapMs,
    async work() {
      await dispatch.takeDue()
      health.succeeded()
      return false
    },
    onError: health.failed,
  })
  const stopListening = applied.onAdvance('webhooks', () => loop.wake())
  const leaseUpkeep = maintainLeases({ ...shared, dispatch, onReleased: () => loop.wake() })

  /**
   * Waits for requests in flight, then aborts them. An aborted request is not recorded, because it says nothing about
   * its receiver and would use up an attempt of the retry schedule. Its delivery is requeued only after the request has
   * ended, so two requests never overlap; a receiver that had already accepted it gets it again under the same id. A
   * finished request that could not be recorded in time keeps its lease until it expires, because its record may still
   * have reached the log.
   */
  async function drain(): Promise<void> {
    await waitUntil(() => dispatch.inFlight().length === 0, limitMs.requests)
    const deliveryIds = dispatch.dropRequests()
    await client.close()
    if (deliveryIds.length > 0) {
      logger.info(
        { deliveries: deliveryIds.length },
        'webhook requests aborted at shutdown; they will be retried',
      )
      await withTimeout(requeueDeliveries(pool, { ...lessee, deliveryIds }), limitMs.requeue).catch(
        () => {},
      )
    }
    await waitUntil(() => dispatch.inFlight().length === 0, limitMs.records)
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

// Their sum must be below the time that a stopping server has to close everything.
const limitMs = { requests: 1000, requeue: 300, records: 500 }
const checkEveryMs = 10

async function waitUntil(condition: () => boolean, ms: number): Promise<void> {
  const until = performance.now() + ms
  while (!condition() && performance.now() < until) await delay(checkEveryMs)
}

const notReadyAfterMs = 10_000

export function createWorkHealth(logger: Logger) {
  let failingSince: number | undefined
  return {
    succeeded() {
      if (failingSince !== undefined) logger.info('resumed taking webhook deliveries')
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
