import { LRUCache } from 'lru-cache'
import type { Decide } from '../../../infra/decide.ts'
import { type Clock, derivedId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { failingSince, findEndpoint } from '../../../projections/webhooks/queries.ts'
import type { DisabledReason, EndpointRow } from '../../../projections/webhooks/rows.ts'
import type { Answer } from '../attempt.ts'
import { giveUpEndpoint } from '../endpoints/disable-endpoint.ts'
import { endpointsOf } from '../endpoints/stream.ts'
import { goneStatus } from './retry.ts'

export interface GiveUpOptions {
  decide: Decide
  db: Db
  clock: Clock
  logger: Logger
}

export interface FailedAttempt {
  endpoint: EndpointRow
  answer: Answer
}

/** After so long without a success nothing is sent to an endpoint any more. */
export const failingMs = 5 * 24 * 60 * 60 * 1000
const lookEveryMs = 60_000

export interface GiveUp {
  /** Looks at the endpoint after a failed attempt. Never rejects: what went wrong is tried again at the next failure. */
  look(failed: FailedAttempt): Promise<void>
  /** Resolves when no look is under way. */
  idle(): Promise<void>
}

/**
 * Disables endpoints to which nothing can be delivered: at once when one says that it is gone, else after five days
 * without a success; for those it looks at most once a minute.
 */
export function createGiveUp({ decide, db, clock, logger }: GiveUpOptions): GiveUp {
  const looking = new Set<Promise<void>>()
  const looked = new LRUCache<string, true>({ max: 10_000, ttl: lookEveryMs })

  async function reasonFor({ endpoint, answer }: FailedAttempt): Promise<Reason | undefined> {
    const { outcome } = answer
    if (outcome.kind === 'response' && outcome.status === goneStatus) return 'gone'
    if (looked.has(endpoint.id)) return undefined
    looked.set(endpoint.id, true)
    const since = await failingSince(db, endpoint.id)
    return since !== undefined && clock() - since >= failingMs ? 'failing' : undefined
  }

  async function disable({ endpoint, answer }: FailedAttempt, reason: Reason): Promise<void> {
    const { id: endpointId, organization_id: organizationId, environment } = endpoint
    const seenAt = answer.attemptedAt
    const eventId = derivedId('evt', endpointId, reason, String(seenAt))
    const events = await decide({
      ...endpointsOf(organizationId),
      load: (tx) => findEndpoint(tx, { organizationId, environment, endpointId }),
      decide: (state) => giveUpEndpoint(state, { reason, seenAt, eventId, now: clock() }),
    })
    if (events.length > 0) logger.info({ organizationId, endpointId, reason }, 'webhook endpoint disabled')
  }

  async function disableIfHopeless(failed: FailedAttempt): Promise<void> {
    try {
      const reason = await reasonFor(failed)
      if (reason) await disable(failed, reason)
    } catch (err) {
      const { id: endpointId } = failed.endpoint
      logger.warn({ err, endpointId }, 'webhook endpoint not disabled, its next failure tries again')
    }
  }

  return {
    look(failed) {
      const look = disableIfHopeless(failed).finally(() => looking.delete(look))
      looking.add(look)
      return look
    },
    async idle() {
      await Promise.all(looking)
    },
  }
}

type Reason = Exclude<DisabledReason, 'manual'>
