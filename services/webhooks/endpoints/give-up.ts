import type { LRUCache } from 'lru-cache'
import type { DecideAs } from '../../../infra/event-store/decide.ts'
import { type Clock, derivedId } from '../../../infra/ids.ts'
import { createLru } from '../../../infra/lru.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { activeServicesAt } from '../../../projections/gate/queries.ts'
import { failingSince, findEndpoint } from '../../../projections/webhooks/queries.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { EndpointFlaggedReason } from '../../../schemas/events.ts'
import { goneStatus, type MadeAttempt } from '../deliveries/decide.ts'
import { endpointsOf, seesServices } from './commands.ts'
import { decideGivingUp, decideRecovery } from './decide.ts'

/** What an attempt says of its endpoint. */
export type JudgedAttempt = Pick<MadeAttempt, 'endpoint' | 'attemptedAt' | 'outcome' | 'result'>

const failingMs = 5 * 24 * 60 * 60 * 1000
const checkEveryMs = 60_000

export interface GiveUp {
  /** Called after an attempt. Never rejects: what went wrong is tried again at the next. */
  judge(made: JudgedAttempt): Promise<void>
  idle(): Promise<void>
}

/**
 * Disables endpoints to which nothing can be delivered: at once when one answers that it is gone, else after five
 * days without a success. How long it has been failing is read once a minute at most. An endpoint that active services
 * of Gate need for approvals is only flagged, until something is delivered to it again.
 */
export function createGiveUp({
  decideAs,
  db,
  clock,
  logger,
}: {
  decideAs: DecideAs
  db: Db
  clock: Clock
  logger: Logger
}): GiveUp {
  const decide = decideAs({ type: 'service', id: 'webhooks' })
  const judging = new Set<Promise<void>>()
  const checked = createLru<string, true>(10_000, { ttl: checkEveryMs })

  async function giveUp(
    { endpoint, attemptedAt }: JudgedAttempt,
    reason: EndpointFlaggedReason,
  ): Promise<void> {
    const path = pathOf(endpoint)
    const { organizationId, endpointId } = path
    const eventId = derivedId('evt', endpointId, reason, String(attemptedAt))
    const events = await decide({
      ...endpointsOf(organizationId),
      ...seesServices,
      load: async (tx) => ({
        endpoint: await findEndpoint(tx, path),
        services: await activeServicesAt(tx, endpointId),
      }),
      decide: (state) => decideGivingUp(state, { reason, attemptedAt, eventId, now: clock() }),
    })
    const line = { organizationId, endpointId, reason }
    for (const { type } of events) {
      if (type === 'WebhookEndpointDisabled') logger.info(line, 'webhook endpoint disabled')
      else logger.warn(line, 'webhook endpoint flagged: services are notified of approvals there')
    }
  }

  async function recover({ endpoint, attemptedAt }: JudgedAttempt): Promise<void> {
    const path = pathOf(endpoint)
    const { organizationId, endpointId } = path
    const eventId = derivedId('evt', endpointId, 'recovered', String(attemptedAt))
    const events = await decide({
      ...endpointsOf(organizationId),
      load: (tx) => findEndpoint(tx, path),
      decide: (state) => decideRecovery(state, { eventId, now: clock() }),
    })
    if (events.length > 0)
      logger.info({ organizationId, endpointId }, 'webhook endpoint not flagged any more')
  }

  async function conclude(made: JudgedAttempt): Promise<void> {
    const { endpoint, result } = made
    if (result === 'succeeded') return endpoint.flagged_reason === null ? undefined : recover(made)
    const reason = await reasonFor(made, { db, checked, now: clock() })
    if (reason) await giveUp(made, reason)
  }

  return {
    judge(made) {
      const { id: endpointId } = made.endpoint
      const judged = conclude(made)
        .catch((err) => {
          logger.warn(
            { err, endpointId },
            'webhook endpoint not judged, its next attempt tries again',
          )
        })
        .finally(() => judging.delete(judged))
      judging.add(judged)
      return judged
    },
    async idle() {
      await Promise.all(judging)
    },
  }
}

/** `checked` has the endpoints that were looked up within the last minute. */
async function reasonFor(
  { endpoint, outcome }: JudgedAttempt,
  { db, checked, now }: { db: Db; checked: LRUCache<string, true>; now: number },
): Promise<EndpointFlaggedReason | undefined> {
  const isGone = outcome.kind === 'response' && outcome.status === goneStatus
  if (isGone && endpoint.flagged_reason === null) return 'gone'
  if (checked.has(endpoint.id)) return undefined
  checked.set(endpoint.id, true)
  if (isGone) return 'gone'
  const since = await failingSince(db, endpoint.id)
  return since !== undefined && now - since >= failingMs ? 'failing' : undefined
}

const pathOf = ({ id: endpointId, organization_id: organizationId, environment }: EndpointRow) => ({
  organizationId,
  environment,
  endpointId,
})
