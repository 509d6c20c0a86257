import type { LRUCache } from 'lru-cache'
import type { DecideAs } from '../../../infra/event-store/decide.ts'
import { type Clock, derivedId } from '../../../infra/ids.ts'
import { createLru } from '../../../infra/lru.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { findServiceIdsByEndpoint } from '../../../projections/gate/queries.ts'
import { findEndpoint, findFailingSince } from '../../../projections/webhooks/queries.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { EndpointFlaggedReason } from '../../../schemas/events.ts'
import { type FinishedAttempt, goneStatus } from '../deliveries/decide.ts'
import { alsoReadsServices, endpointDecisionOptions } from './commands.ts'
import { decideDisableOrFlag, decideRecovery } from './decide.ts'

/*
 * Automatic disabling of endpoints. An endpoint is disabled at once when it responds 410 (`gone`), and after failing
 * for five days (`failing`). An endpoint that active Gate services need for approvals is only flagged, until a delivery
 * succeeds.
 */

export type EndpointAttempt = Pick<
  FinishedAttempt,
  'endpoint' | 'attemptedAt' | 'outcome' | 'result'
>

const failingMs = 5 * 24 * 60 * 60 * 1000
const checkIntervalMs = 60_000

export interface EndpointHealth {
  /** Disables the attempted endpoint, or sets or clears its flag. Never rejects; the next attempt is a retry. */
  evaluate(attempt: EndpointAttempt): Promise<void>
  /** Resolves when no evaluation is in progress. */
  idle(): Promise<void>
}

export function createEndpointHealth({
  decideAs,
  db,
  clock,
  logger,
}: {
  decideAs: DecideAs
  db: Db
  clock: Clock
  logger: Logger
}): EndpointHealth {
  const decide = decideAs({ type: 'service', id: 'webhooks' })
  const pending = new Set<Promise<void>>()
  const recentChecks = createLru<string, true>(10_000, { ttl: checkIntervalMs })

  async function disableOrFlag(
    { endpoint, attemptedAt }: EndpointAttempt,
    reason: EndpointFlaggedReason,
  ): Promise<void> {
    const path = pathOf(endpoint)
    const { organizationId, endpointId } = path
    const eventId = derivedId('evt', endpointId, reason, String(attemptedAt))
    const events = await decide({
      ...endpointDecisionOptions(organizationId),
      ...alsoReadsServices,
      load: async (tx) => ({
        endpoint: await findEndpoint(tx, path),
        services: await findServiceIdsByEndpoint(tx, endpointId),
      }),
      decide: (state) => decideDisableOrFlag(state, { reason, attemptedAt, eventId, now: clock() }),
    })
    const fields = { organization_id: organizationId, endpoint_id: endpointId, reason }
    for (const { type } of events) {
      if (type === 'WebhookEndpointDisabled') logger.info(fields, 'webhook endpoint disabled')
      else
        logger.warn(fields, 'webhook endpoint flagged, not disabled: it receives signup approvals')
    }
  }

  async function recover({ endpoint, attemptedAt }: EndpointAttempt): Promise<void> {
    const path = pathOf(endpoint)
    const { organizationId, endpointId } = path
    const eventId = derivedId('evt', endpointId, 'recovered', String(attemptedAt))
    const events = await decide({
      ...endpointDecisionOptions(organizationId),
      load: (tx) => findEndpoint(tx, path),
      decide: (state) => decideRecovery(state, { eventId, now: clock() }),
    })
    if (events.length > 0)
      logger.info(
        { organization_id: organizationId, endpoint_id: endpointId },
        'webhook endpoint no longer flagged',
      )
  }

  async function update(attempt: EndpointAttempt): Promise<void> {
    const { endpoint, result } = attempt
    if (result === 'succeeded')
      return endpoint.flagged_reason === null ? undefined : recover(attempt)
    const reason = await findDisableReason(attempt, { db, recentChecks, now: clock() })
    if (reason) await disableOrFlag(attempt, reason)
  }

  return {
    evaluate(attempt) {
      const { id: endpointId } = attempt.endpoint
      const evaluation = update(attempt)
        .catch((err) => {
          logger.warn(
            { err, endpoint_id: endpointId },
            'failed to evaluate webhook endpoint; retrying on its next attempt',
          )
        })
        .finally(() => pending.delete(evaluation))
      pending.add(evaluation)
      return evaluation
    },
    async idle() {
      await Promise.all(pending)
    },
  }
}

/** Checks an endpoint at most once a minute. `recentChecks`: ids of endpoints checked within the last minute. */
async function findDisableReason(
  { endpoint, outcome }: EndpointAttempt,
  { db, recentChecks, now }: { db: Db; recentChecks: LRUCache<string, true>; now: number },
): Promise<EndpointFlaggedReason | undefined> {
  const isGone = outcome.kind === 'response' && outcome.status === goneStatus
  if (isGone && endpoint.flagged_reason === null) return 'gone'
  if (recentChecks.has(endpoint.id)) return undefined
  recentChecks.set(endpoint.id, true)
  if (isGone) return 'gone'
  const since = await findFailingSince(db, endpoint.id)
  return since !== undefined && now - since >= failingMs ? 'failing' : undefined
}

const pathOf = ({ id: endpointId, organization_id: organizationId, environment }: EndpointRow) => ({
  organizationId,
  environment,
  endpointId,
})
