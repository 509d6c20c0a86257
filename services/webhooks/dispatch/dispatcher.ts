import type pg from 'pg'
import type { Config } from '../../../infra/config.ts'
import type { Keyring } from '../../../infra/crypto/keyring.ts'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { type CaughtUpOptions, createCaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import type { Decide } from '../../../infra/event-store/decide.ts'
import { type Clock, hexId, type Random } from '../../../infra/ids.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { createAddressRules } from '../../../infra/safe-http/addresses.ts'
import { createWebhookClient, type WebhookClient } from '../../../infra/safe-http/client.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { within } from '../../../infra/timing.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { createSigningSecrets } from '../deliveries/attempt.ts'
import { createGiveUp, type GiveUp } from '../endpoints/give-up.ts'
import type { WebhookMeter } from '../metrics.ts'
import { createConcurrencyLimits } from './concurrency.ts'
import { createDeliver, createRecorder, type Recorder } from './deliver.ts'
import { createInFlight, type InFlight, keepVisibility } from './in-flight.ts'
import { createReceive } from './queue.ts'
import { makeVisible } from './visibility.ts'
import { createWork, createWorkHealth } from './work.ts'

interface DispatcherOptions {
  config: Config
  databaseUrl: string
  log: EventLog
  codec: EventCodec
  applied: Applied
  decide: Decide
  keyring: Keyring
  clock: Clock
  random: Random
  logger: Logger
  meter: WebhookMeter
  client?: WebhookClient
  identify?: CaughtUpOptions['identify']
}

export interface RunningDispatcher {
  /** Rejects while deliveries cannot be received. */
  check(): Promise<void>
  stop(): Promise<void>
}

/**
 * A database that crashes may lose visibility timeouts, and only together with all that was written after them. Rows of
 * queues come and go by the thousand. An index scan marks those that are gone and stops at its limit, where a bitmap
 * scan would fetch all of them each time.
 */
const poolOptions = {
  max: 4,
  applicationName: 'tidegate webhooks',
  queryTimeoutMs: 10_000,
  idleInTransactionMs: 15_000,
  settings: { synchronous_commit: 'off', enable_bitmapscan: 'off' },
}

// A delivery is skipped where its organization is not active.
const readModels = [
  { projection: 'webhooks', topic: eventTopics.WebhookDeliveryAttempted },
  { projection: 'organizations', topic: eventTopics.OrganizationCreated },
]

/** Between two looks at the queue: one look serves all requests that ended since the last one. */
const gapMs = 10

/**
 * Makes the deliveries that are due, until stopped. Any number of processes may do so: a delivery is visible to one at
 * a time. At least once: it is made again when the process that made it died before its record was on the log.
 */
export async function runDispatcher(options: DispatcherOptions): Promise<RunningDispatcher> {
  const { config, applied, logger, clock, decide } = options
  const owner = hexId('dispatcher', options.random)
  const pool = createPool({ url: options.databaseUrl, ...poolOptions })
  const client = options.client ?? createClient(config)
  const inFlight = createInFlight()
  const limits = createConcurrencyLimits()
  const stopping = new AbortController()
  const own = {
    owner,
    pool,
    client,
    inFlight,
    limits,
    visibilityTimeoutMs: config.WEBHOOK_LEASE_MS,
    signal: stopping.signal,
  }
  const shared = { ...options, ...own }
  const recorder = createRecorder(shared)
  const giveUp = createGiveUp({ decide, db: pool, clock, logger })
  const work = createWork({
    ...shared,
    caughtUp: createCaughtUp({ ...shared, db: pool, readModels }),
    receive: createReceive(shared),
    deliver: createDeliver({
      ...shared,
      recorder,
      secrets: createSigningSecrets(options.keyring),
      waitsSeconds: config.WEBHOOK_RETRY_SECONDS,
      giveUp,
    }),
    onFree: (withinMs) => loop.wake(withinMs),
  })
  const health = createWorkHealth(logger)
  const loop = runOnDemand({ gapMs, work: () => work().then(health.succeeded, health.failed) })
  const stopListening = applied.onAdvance('webhooks', () => loop.wake())
  const keeping = keepVisibility({ ...shared, onExpired: () => loop.wake() })
  return {
    check: health.check,
    async stop() {
      stopping.abort()
      stopListening()
      await briefly(loop.stop())
      await drain({ ...shared, recorder, giveUp })
      await briefly(keeping.stop())
      await briefly(pool.end())
    },
  }
}

function createClient({ WEBHOOK_ALLOWED_NETWORKS, WEBHOOK_TIMEOUT_MS: timeoutMs }: Config): WebhookClient {
  return createWebhookClient({ rules: createAddressRules(WEBHOOK_ALLOWED_NETWORKS), timeoutMs })
}

function briefly(ending: Promise<void>): Promise<void> {
  return within(ending, 300).catch(() => {})
}

interface DrainOptions {
  owner: string
  pool: pg.Pool
  client: Pick<WebhookClient, 'close'>
  inFlight: InFlight
  recorder: Pick<Recorder, 'close'>
  giveUp: Pick<GiveUp, 'idle'>
  logger: Logger
}

// Together less than a stopping server has for all that it closes.
const limitMs = { requests: 1000, queue: 300, records: 500 }

/**
 * Waits for what is in flight, then ends it. A request that is cut off is not recorded: it says nothing about its
 * receiver, which would be charged an attempt of the schedule. Its delivery becomes visible again, after the request
 * has ended, so that there are never two at once. A receiver that had accepted it gets it twice, with the same id. What
 * was answered and not recorded in time stays hidden until its timeout expires: it may have been recorded after all.
 */
async function drain(options: DrainOptions): Promise<void> {
  const { owner, pool, client, inFlight, recorder, giveUp, logger } = options
  await within(inFlight.empty(), limitMs.requests).catch(() => {})
  const deliveryIds = inFlight.dropRequests()
  await client.close()
  if (deliveryIds.length > 0) {
    logger.info({ deliveries: deliveryIds.length }, 'webhook requests cut off, to be made again')
    await within(makeVisible(pool, { owner, deliveryIds }), limitMs.queue).catch(() => {})
  }
  await within(Promise.all([inFlight.empty(), giveUp.idle()]), limitMs.records).catch(() => {})
  recorder.close()
}

interface OnDemandOptions {
  gapMs: number
  work: () => Promise<number>
}

interface OnDemand {
  wake(withinMs?: number): void
  /** No run begins any more; resolves when the running one has ended. */
  stop(): Promise<void>
}

/** Runs `work` whenever it is asked for and every now and then, one run at a time. `work` must not reject. */
export function runOnDemand({ gapMs, work }: OnDemandOptions): OnDemand {
  let timer: NodeJS.Timeout | undefined
  let dueAt = Infinity
  let startedAt = -Infinity
  let running: Promise<void> | undefined
  let wantedWithin = Infinity
  let isStopping = false

  function schedule(ms: number): void {
    const at = performance.now() + ms
    if (isStopping || dueAt <= at) return
    clearTimeout(timer)
    dueAt = at
    timer = setTimeout(begin, ms)
  }

  function begin(): void {
    dueAt = Infinity
    wantedWithin = Infinity
    startedAt = performance.now()
    running = run()
  }

  async function run(): Promise<void> {
    const ms = await work()
    running = undefined
    schedule(ms)
    if (wantedWithin < Infinity) wake(wantedWithin)
  }

  function wake(withinMs = 0): void {
    if (running) wantedWithin = Math.min(wantedWithin, withinMs)
    else schedule(Math.max(withinMs, startedAt + gapMs - performance.now()))
  }

  schedule(0)
  return {
    wake,
    async stop() {
      isStopping = true
      clearTimeout(timer)
      await running
    },
  }
}
