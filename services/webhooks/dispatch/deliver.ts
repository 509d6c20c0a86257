import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { Random } from '../../../infra/ids.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import { type Answer, type AttemptDeps, type AttemptOf, attempt, attempted } from '../attempt.ts'
import type { WebhookMeter } from '../metrics.ts'
import { skipped } from '../skipped.ts'
import type { GiveUp } from './give-up.ts'
import { type Job, skipReason } from './load.ts'
import type { Recorder } from './recorder.ts'
import { type AttemptResult, resultOf } from './retry.ts'
import type { RequestEnd } from './window.ts'

export interface DeliverDeps extends AttemptDeps {
  waitsSeconds: readonly number[]
  random: Random
  recorder: Pick<Recorder, 'record'>
  meter: WebhookMeter
  giveUp: Pick<GiveUp, 'look'>
  logger: Logger
}

/**
 * Called when a job's request has ended, or when there is none. False = the delivery is not ours any more, and what
 * the request met is not recorded.
 */
export type OnEnd = (end?: RequestEnd) => boolean

/** Makes one attempt of a leased delivery and records it; resolves when the lease has been given back. */
export function createDeliver(deps: DeliverDeps): (job: Job, onEnd: OnEnd) => Promise<void> {
  const { recorder, clock } = deps
  return async (job, onEnd) => {
    const { delivery, endpoint } = job
    const reason = skipReason(job)
    if (reason !== undefined) {
      if (onEnd()) await recorder.record(delivery.id, skip(job, { reason, now: clock() }))
      return
    }
    const answer = await answerOf(deps, { event: job.event, endpoint })
    const { outcome } = answer
    if (!onEnd({ answered: outcome.kind === 'response', durationMs: outcome.durationMs })) return
    const result = resultFor(deps, job, answer)
    tell(deps, job, { endpoint, answer, ...result })
    const made = { deliveryId: delivery.id, attempt: delivery.attempts + 1 }
    await recorder.record(
      delivery.id,
      attempted({ event: job.event, endpoint, ...answer, ...made, ...result }),
    )
    void deps.giveUp.look({ endpoint, answer, succeeded: result.result === 'succeeded' })
  }
}

async function answerOf(deps: DeliverDeps, about: AttemptOf): Promise<Answer> {
  const attemptedAt = deps.clock()
  return attempt(deps, about).catch((err) => {
    // Somebody has to give the server its master key back; until then the schedule goes on.
    deps.logger.error({ err, endpointId: about.endpoint.id }, 'a webhook could not be signed')
    const message = 'The server could not open the signing secret of the endpoint.'
    return { attemptedAt, outcome: { kind: 'failure', reason: 'protocol', message, durationMs: 0 } }
  })
}

function resultFor(
  { waitsSeconds, random, clock }: DeliverDeps,
  { delivery }: Job,
  { outcome }: Answer,
): AttemptResult {
  return resultOf({
    outcome,
    attemptsInRound: delivery.attemptsInRound + 1,
    now: clock(),
    waitsSeconds,
    random: random(4).readUInt32BE() / 2 ** 32,
  })
}

interface Told extends AttemptResult {
  endpoint: EndpointRow
  answer: Answer
}

function tell(
  { meter, logger, clock }: Pick<DeliverDeps, 'meter' | 'logger' | 'clock'>,
  { delivery, event }: Job,
  { endpoint, answer: { outcome }, result, nextAttemptAt }: Told,
): void {
  const { durationMs } = outcome
  meter.onAttempt({ outcome: result, durationMs })
  if (result === 'succeeded') meter.onDelivered(clock() - event.created_at)
  const line = {
    organizationId: event.organization_id,
    eventId: event.id,
    deliveryId: delivery.id,
    endpointId: endpoint.id,
    attempt: delivery.attempts + 1,
    outcome: result,
    durationMs,
    ...(outcome.kind === 'response' ? { status: outcome.status } : { reason: outcome.reason }),
  }
  if (result === 'succeeded') logger.debug(line, 'webhook delivered')
  else logger.info({ ...line, nextAttemptAt }, 'webhook not delivered')
}

function skip({ delivery, event }: Job, { reason, now }: { reason: string; now: number }): DecidedEvent {
  const { id, eventId: event_id, endpointId: endpoint_id, dueAt } = delivery
  const { organization_id, environment } = event
  const about = { id, event_id, endpoint_id, organization_id, environment }
  return skipped({ delivery: about, reason, occasion: String(dueAt), now })
}
