import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../../../infra/config.ts'
import type { Keyring } from '../../../infra/crypto/keyring.ts'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { createCaughtUp } from '../../../infra/event-store/catch-up.ts'
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
import { within } from '../../../infra/timing.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { createSigningSecrets } from '../deliveries/attempt.ts'
import { createGiveUp } from '../endpoints/give-up.ts'
import { putBack } from '../leases.ts'
import type { WebhookMeter } from '../metrics.ts'
import { createConcurrencyLimits } from './concurrency.ts'
import { deliver } from './deliver.ts'
import { keepLeases } from './keep-leases.ts'
import { createRecorder } from './recorder.ts'
import { tracedDelivery } from './traced-delivery.ts'
import { createWork } from './work.ts'

interface DispatcherOptions {
  config: Config
  databaseUrl: string
  log: EventLog
  codec: EventCodec
  applied: Applied
  decideAs: DecideAs
  keyring: Keyring
  clock: Clock
  random: Random
  logger: Logger
  meter: WebhookMeter
  tracing?: Tracing | undefined
}

export interface RunningDispatcher {
  /** Rejects while deliveries cannot be received. */
  check(): Promise<void>
  stop(): Promise<void>
}

/**
 * A database that crashes may lose leases, and only together with all that was written after them. Leases come
 * and go by the thousand. An index scan marks those that are gone and stops at its limit, where a bitmap
 * scan would fetch all of them each time. A merge join would compare each delivery with all leases that are due at the
 * same moment.
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

// A delivery is skipped where its organization is not active.
const readModels = [
  { projection: 'webhooks', topic: eventTopics.WebhookDeliveryAttempted },
  { projection: 'organizations', topic: eventTopics.OrganizationCreated },
]

// What is due is taken when something happened, though not sooner after the last take, and every half second.
const gapMs = 25
const pollMs = 500

/**
 * Makes the deliveries that are due, until stopped. Any number of processes may do so: a delivery is leased to one at
 * a time. At least once: it is made again when the process that made it died before its record was on the log.
 */
export async function runDispatcher(options: DispatcherOptions): Promise<RunningDispatcher> {
  const { config, applied, logger } = options
  const pool = createPool({ url: options.databaseUrl, ...dispatchPoolOptions })
  const rules = createAddressRules(config.WEBHOOK_ALLOWED_NETWORKS)
  const client = createWebhookClient({ rules, timeoutMs: config.WEBHOOK_TIMEOUT_MS })
  const stopping = new AbortController()
  const own = {
    owner: hexId('dispatcher', options.random),
    pool,
    client,
    db: pool,
    signal: stopping.signal,
  }
  const shared = { ...options, ...own, leaseMs: config.WEBHOOK_LEASE_MS }
  const ended = new AbortController()
  const recorder = createRecorder({ ...shared, signal: ended.signal })
  const giveUp = createGiveUp(shared)
  const secrets = createSigningSecrets(options.keyring)
  const attempting = { ...shared, secrets, waitsSeconds: config.WEBHOOK_RETRY_SECONDS }
  const work = createWork({
    ...shared,
    limits: createConcurrencyLimits(),
    caughtUp: createCaughtUp({ ...shared, readModels }),
    deliver: tracedDelivery((job, mayBegin) => deliver(attempting, job, mayBegin), options.tracing),
    recorder,
    giveUp,
    onFree: () => loop.wake(),
  })
  const health = createWorkHealth(logger)
  const loop = runPeriodically({
    intervalMs: pollMs,
    gapMs,
    async work() {
      await work.takeDue()
      health.succeeded()
      return false
    },
    onError: health.failed,
  })
  const stopListening = applied.onAdvance('webhooks', () => loop.wake())
  const keeping = keepLeases({ ...shared, work, onReleased: () => loop.wake() })

  /**
   * Waits for what is in flight, then ends it. A request that is cut off is not recorded: it says nothing about its
   * receiver, which would be charged an attempt of the schedule. Its delivery is put back after the request has ended,
   * so that there are never two at once. A receiver that had accepted it gets it twice, with the same id. What was
   * answered and not recorded in time is leased until its lease expires, because it may have been recorded after all.
   */
  async function drain(): Promise<void> {
    await isSoon(() => work.inFlight().length === 0, limitMs.requests)
    const deliveryIds = work.dropRequests()
    await client.close()
    if (deliveryIds.length > 0) {
      logger.info({ deliveries: deliveryIds.length }, 'webhook requests cut off, to be made again')
      await within(putBack(pool, { ...own, deliveryIds }), limitMs.putBack).catch(() => {})
    }
    await isSoon(() => work.inFlight().length === 0, limitMs.records)
    await briefly(giveUp.idle())
    ended.abort()
  }

  return {
    check: health.check,
    async stop() {
      stopping.abort()
      stopListening()
      await briefly(loop.stop())
      await drain()
      await briefly(keeping.stop())
      await briefly(pool.end())
    },
  }
}

function briefly(ending: Promise<void>): Promise<void> {
  return within(ending, 300).catch(() => {})
}

// Together less than a stopping server has for all that it closes.
const limitMs = { requests: 1000, putBack: 300, records: 500 }
const checkEveryMs = 10

async function isSoon(condition: () => boolean, ms: number): Promise<void> {
  const until = performance.now() + ms
  while (!condition() && performance.now() < until) await delay(checkEveryMs)
}

const notReadyAfterMs = 10_000

export function createWorkHealth(logger: Logger) {
  let since: number | undefined
  return {
    succeeded() {
      if (since !== undefined) logger.info('webhooks are taken again')
      since = undefined
    },
    failed(err: unknown) {
      if (since === undefined) logger.warn({ err }, 'webhooks cannot be taken, trying again')
      since ??= performance.now()
    },
    async check(): Promise<void> {
      if (since === undefined || performance.now() - since < notReadyAfterMs) return
      throw new Error('webhooks cannot be taken')
    },
  }
}
