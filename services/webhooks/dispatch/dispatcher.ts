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
import type { WebhookMeter } from '../metrics.ts'
import { createSigningSecrets } from '../signing-secrets.ts'
import { createDeliver } from './deliver.ts'
import { createGiveUp } from './give-up.ts'
import { createHeld } from './held.ts'
import { keepLeases } from './keep-leases.ts'
import { letGo } from './let-go.ts'
import { runOnDemand } from './on-demand.ts'
import { createRecorder } from './recorder.ts'
import { createTaker } from './taker.ts'
import { createTrouble } from './trouble.ts'
import { createWindows } from './window.ts'
import { createWork } from './work.ts'

export interface DispatcherOptions {
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
  /** Default: one that follows the settings. */
  client?: WebhookClient
  /** Names the run of the database; for tests. */
  identify?: CaughtUpOptions['identify']
}

export interface RunningDispatcher {
  /** Rejects while deliveries cannot be taken. */
  check(): Promise<void>
  stop(): Promise<void>
}

/**
 * What is lost with a database that crashes are leases, and only together with all that was written after them. Rows of
 * queues come and go by the thousand: an index scan passes those that are gone once and marks them, and reads due
 * deliveries in order up to its limit, where a bitmap scan would fetch all of them, dead ones too, each time.
 */
const poolOptions = {
  max: 4,
  applicationName: 'tidegate webhooks',
  queryTimeoutMs: 10_000,
  idleInTransactionMs: 15_000,
  settings: { synchronous_commit: 'off', enable_bitmapscan: 'off' },
}

/** The organizations too: a delivery is skipped where its organization is not active. */
const readModels = [
  { projection: 'webhooks', topic: eventTopics.WebhookDeliveryAttempted },
  { projection: 'organizations', topic: eventTopics.OrganizationCreated },
]

/** One take serves all slots that got free since the last one. */
const gapMs = 10

/**
 * Makes the deliveries that are due, until stopped. Any number of processes may do so: a delivery is leased to one of
 * them at a time. At least once: a delivery is made again when whoever made it died before its record was on the log.
 */
export async function runDispatcher(options: DispatcherOptions): Promise<RunningDispatcher> {
  const { config, applied, logger, clock, decide } = options
  const owner = hexId('dispatcher', options.random)
  const pool = createPool({ url: options.databaseUrl, ...poolOptions })
  const client = options.client ?? createClient(config)
  const held = createHeld()
  const windows = createWindows()
  const stopping = new AbortController()
  const own = {
    owner,
    pool,
    client,
    held,
    windows,
    leaseMs: config.WEBHOOK_LEASE_MS,
    signal: stopping.signal,
  }
  const shared = { ...options, ...own }
  const recorder = createRecorder(shared)
  const giveUp = createGiveUp({ decide, db: pool, clock, logger })
  const work = createWork({
    ...shared,
    caughtUp: createCaughtUp({ ...shared, db: pool, readModels }),
    take: createTaker(shared),
    deliver: createDeliver({
      ...shared,
      recorder,
      secrets: createSigningSecrets(options.keyring),
      waitsSeconds: config.WEBHOOK_RETRY_SECONDS,
      giveUp,
    }),
    onFree: (withinMs) => loop.wake(withinMs),
  })
  const trouble = createTrouble(logger)
  const loop = runOnDemand({ gapMs, work: () => work().then(trouble.over, trouble.met) })
  const stopListening = applied.onAdvance('webhooks', () => loop.wake())
  const keeping = keepLeases({ ...shared, onReaped: () => loop.wake() })
  return {
    check: trouble.check,
    async stop() {
      stopping.abort()
      stopListening()
      await briefly(loop.stop())
      await letGo({ ...shared, recorder, giveUp })
      await briefly(keeping.stop())
      await briefly(pool.end())
    },
  }
}

function createClient({ WEBHOOK_ALLOWED_NETWORKS, WEBHOOK_TIMEOUT_MS: timeoutMs }: Config): WebhookClient {
  return createWebhookClient({ rules: createAddressRules(WEBHOOK_ALLOWED_NETWORKS), timeoutMs })
}

/** A log or database that does not answer must not keep the process from ending. */
function briefly(ending: Promise<void>): Promise<void> {
  return within(ending, 300).catch(() => {})
}
