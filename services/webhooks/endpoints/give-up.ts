import { LRUCache } from 'lru-cache'
import type { DecideAs } from '../../../infra/event-store/decide.ts'
import { type Clock, derivedId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { activeServicesAt } from '../../../projections/gate/queries.ts'
import { failingSince, findEndpoint } from '../../../projections/webhooks/queries.ts'
import type { EndpointRow, FlaggedReason } from '../../../projections/webhooks/tables.ts'
import type { PostedAttempt } from '../deliveries/attempt.ts'
import { goneStatus } from '../deliveries/decide.ts'
import { endpointsOf, seesServices } from './commands.ts'
import { decideGivingUp, decideRecovery } from './decide.ts'

interface GiveUpOptions {
  decideAs: DecideAs
  db: Db
  clock: Clock
  logger: Logger
}

export interface JudgedAttempt {
  endpoint: EndpointRow
  posted: PostedAttempt
  succeeded: boolean
}

const failingMs = 5 * 24 * 60 * 60 * 1000
const lookEveryMs = 60_000

export interface GiveUp {
  /** Called after an attempt. Never rejects: what went wrong is tried again at the next. */
  look(made: JudgedAttempt): Promise<void>
  idle(): Promise<void>
}

/**
 * Disables endpoints to which nothing can be delivered: at once when one answers that it is gone, else after five
 * days without a success. It looks once a minute at most. An endpoint that active services of Gate need for approvals
 * is only flagged, until something is delivered to it again.
 */
export function createGiveUp({ decideAs, db, clock, logger }: GiveUpOptions): GiveUp {
  const decide = decideAs({ type: 'service', id: 'webhooks' })
  const looking = new Set<Promise<void>>()
  const looked = new LRUCache<string, true>({ max: 10_000, ttl: lookEveryMs })

  async function reasonFor({ endpoint, posted }: JudgedAttempt): Promise<FlaggedReason | undefined> {
    const { outcome } = posted
    const isGone = outcome.kind === 'response' && outcome.status === goneStatus
    if (isGone && endpoint.flagged_reason === null) return 'gone'
    if (looked.has(endpoint.id)) return undefined
    looked.set(endpoint.id, true)
    if (isGone) return 'gone'
    const since = await failingSince(db, endpoint.id)
    return since !== undefined && clock() - since >= failingMs ? 'failing' : undefined
  }

  async function giveUp({ endpoint, posted }: JudgedAttempt, reason: FlaggedReason): Promise<void> {
    const { id: endpointId, organization_id: organizationId, environment } = endpoint
    const seenAt = posted.attemptedAt
    const eventId = derivedId('evt', endpointId, reason, String(seenAt))
    const events = await decide({
      ...endpointsOf(organizationId),
      ...seesServices,
      load: async (tx) => ({
        endpoint: await findEndpoint(tx, { organizationId, environment, endpointId }),
        services: await activeServicesAt(tx, endpointId),
      }),
      decide: (state) => decideGivingUp(state, { reason, seenAt, eventId, now: clock() }),
    })
    const line = { organizationId, endpointId, reason }
    for (const { type } of events) {
      if (type === 'WebhookEndpointDisabled') logger.info(line, 'webhook endpoint disabled')
      else logger.warn(line, 'webhook endpoint flagged: services are told of approvals there')
    }
  }

  async function recover({ endpoint, posted }: JudgedAttempt): Promise<void> {
    const { id: endpointId, organization_id: organizationId, environment } = endpoint
    const eventId = derivedId('evt', endpointId, 'recovered', String(posted.attemptedAt))
    const events = await decide({
      ...endpointsOf(organizationId),
      load: (tx) => findEndpoint(tx, { organizationId, environment, endpointId }),
      decide: (state) => decideRecovery(state, { eventId, now: clock() }),
    })
    if (events.length > 0)
      logger.info({ organizationId, endpointId }, 'webhook endpoint not flagged any more')
  }

  async function lookAt(made: JudgedAttempt): Promise<void> {
    const { endpoint, succeeded } = made
    try {
      if (succeeded) return endpoint.flagged_reason === null ? undefined : await recover(made)
      const reason = await reasonFor(made)
      if (reason) await giveUp(made, reason)
    } catch (err) {
      logger.warn(
        { err, endpointId: endpoint.id },
        'webhook endpoint not judged, its next attempt tries again',
      )
    }
  }

  return {
    look(made) {
      const look = lookAt(made).finally(() => looking.delete(look))
      looking.add(look)
      return look
    },
    async idle() {
      await Promise.all(looking)
    },
  }
}
