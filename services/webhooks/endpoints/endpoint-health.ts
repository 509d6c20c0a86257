import type { DecideAs } from '../../../infra/event-store/decide.ts'
import { type Clock, derivedId } from '../../../infra/ids.ts'
import { iso } from '../../../infra/iso.ts'
import { createLru } from '../../../infra/lru.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { findServiceIdsByEndpoint } from '../../../projections/gate/queries.ts'
import { findEndpoint, findFailureStreak } from '../../../projections/webhooks/queries.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { EndpointFlaggedReason } from '../../../schemas/events.ts'
import { type FinishedAttempt, goneStatus } from '../deliveries/decide.ts'
import type { Notice } from '../events/schemas.ts'
import { createRaise, findDueNotices, noticeEvent } from '../raise.ts'
import { alsoReadsServices, endpointDecisionOptions } from './commands.ts'
import { decideDisableOrFlag, decideRecovery } from './decide.ts'

/*
 * Automatic disabling of endpoints. An endpoint is disabled at once when it responds 410 (`gone`), and after failing
 * for five days (`failing`). An endpoint that active Gate services need for approvals is only flagged, until a delivery
 * succeeds. `endpoint.failing` tells the other endpoints: after an hour of failures, and when the endpoint is disabled or
 * flagged.
 */

export type EndpointAttempt = Pick<
  FinishedAttempt,
  'endpoint' | 'attemptedAt' | 'outcome' | 'result'
>

const failingMs = 5 * 24 * 60 * 60 * 1000
const noticeMs = 60 * 60 * 1000
const noticeFailures = 3
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
  const raise = createRaise({ decideAs })
  // Times of the latest checks, by endpoint id.
  const recentChecks = createLru<string, number>(10_000)

  async function disableOrFlag(
    { endpoint, attemptedAt }: EndpointAttempt,
    reason: EndpointFlaggedReason,
  ): Promise<void> {
    const path = pathOf(endpoint)
    const { organizationId, endpointId } = path
    const eventId = derivedId('evt', endpointId, reason, String(attemptedAt))
    const now = clock()
    const events = await decide({
      ...endpointDecisionOptions(organizationId),
      ...alsoReadsServices,
      async load(tx) {
        const services = await findServiceIdsByEndpoint(tx, endpointId)
        const { start, failures } = await findFailureStreak(tx, endpointId)
        const notice = failingNotice(endpoint, {
          start,
          since: failures[0] ?? attemptedAt,
          now,
          disabledReason: services.length === 0 ? reason : null,
        })
        return {
          endpoint: await findEndpoint(tx, path),
          services,
          notices: await findDueNotices(tx, [notice]),
        }
      },
      decide({ notices, ...state }) {
        const decided = decideDisableOrFlag(state, { reason, attemptedAt, eventId, now })
        return decided.length === 0 ? [] : [...decided, ...notices.map(noticeEvent)]
      },
    })
    const fields = { organization_id: organizationId, endpoint_id: endpointId, reason }
    for (const { type } of events) {
      if (type === 'WebhookEndpointDisabled') logger.info(fields, 'webhook endpoint disabled')
      if (type === 'WebhookEndpointFlagged')
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
    const { endpoint, outcome, result } = attempt
    if (result === 'succeeded')
      return endpoint.flagged_reason === null ? undefined : recover(attempt)
    const now = clock()
    const isGone = outcome.kind === 'response' && outcome.status === goneStatus
    if (isGone && endpoint.flagged_reason === null) return disableOrFlag(attempt, 'gone')
    if (now - (recentChecks.get(endpoint.id) ?? -Infinity) < checkIntervalMs) return
    recentChecks.set(endpoint.id, now)
    if (isGone) return disableOrFlag(attempt, 'gone')
    const { start, failures } = await findFailureStreak(db, endpoint.id)
    const [since = now] = failures
    if (now - since >= failingMs) return disableOrFlag(attempt, 'failing')
    // Raised before if the endpoint is flagged.
    if (endpoint.flagged_reason !== null || failures.length < noticeFailures) return
    if (now - since >= noticeMs)
      await raise(failingNotice(endpoint, { start, since, now, disabledReason: null }))
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

// The occasion has the start of the streak, which an erasure does not change, and the status: the event is raised once
// while the endpoint is active, and once when it is disabled.
function failingNotice(
  endpoint: EndpointRow,
  {
    start,
    since,
    now,
    disabledReason,
  }: {
    start: number
    since: number
    now: number
    disabledReason: EndpointFlaggedReason | null
  },
): Notice {
  const { id, organization_id: organizationId, environment, name } = endpoint
  const status = disabledReason === null ? 'active' : 'disabled'
  const failing_since = iso(since)
  const health = { id, name, status, disabled_reason: disabledReason, failing_since } as const
  return {
    organizationId,
    environment,
    type: 'endpoint.failing',
    occasion: `${id} ${start} ${status}`,
    subject: { type: 'webhook_endpoint', id },
    data: { object: 'webhook_endpoint_health', endpoint: health },
    at: now,
    exceptEndpointId: id,
  }
}

const pathOf = ({ id: endpointId, organization_id: organizationId, environment }: EndpointRow) => ({
  organizationId,
  environment,
  endpointId,
})
