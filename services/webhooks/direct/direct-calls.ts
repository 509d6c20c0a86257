import type { EventCodec } from '../../../infra/event-store/codec.ts'
import type { Decide, DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { PostOutcome } from '../../../infra/safe-http/client.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type {
  DirectAnswer,
  DirectAttempt,
  DirectCalls,
  DirectResponse,
  Judgement,
} from '../../../infra/wire/webhooks/direct-call.ts'
import type { WebhookAttemptOutcome } from '../../../schemas/events.ts'
import { type Answer, type AttemptDeps, attempt, attempted } from '../attempt.ts'
import { createGiveUp } from '../dispatch/give-up.ts'
import { skipped } from '../skipped.ts'
import { type DirectJob, findDirectDelivery, loadDirect } from './load-direct.ts'
import { raiseDirect } from './raise-direct.ts'

export interface DirectCallsOptions extends AttemptDeps {
  decide: Decide
  pool: Db
  log: Pick<EventLog, 'append'>
  codec: EventCodec
  logger: Logger
}

/** What became of an attempt, for the log and for the caller. */
interface Concluded {
  answer: DirectAnswer
  result: WebhookAttemptOutcome
  problem?: string
}

/** Deliveries whose sender waits for the receiver's answer. */
export function createDirectCalls(options: DirectCallsOptions): DirectCalls {
  const { decide, pool, log, codec, clock, logger } = options
  const giveUp = createGiveUp({ decide, db: pool, clock, logger })

  async function append({ event, meta }: DecidedEvent): Promise<void> {
    await log.append([codec.toRecord(event, meta)])
  }

  async function call(job: DirectJob, asked: DirectAttempt): Promise<DirectAnswer> {
    const { event, endpoint, delivery } = job
    const { attempt: number, timeoutMs } = asked
    const met = await attempt(options, { event, endpoint, timeoutMs })
    const { answer, result, problem } = conclude(met.outcome, asked)
    tell(logger, { job, number, met, result })
    const what = { deliveryId: delivery.id, attempt: number, result, nextAttemptAt: null }
    const error = problem === undefined ? {} : { error: problem }
    // Before the caller knows: what it does about the answer must not be on the log without the attempt.
    await append(attempted({ event, endpoint, ...met, ...what, ...error }))
    void giveUp.look({ endpoint, answer: met, succeeded: result === 'succeeded' })
    return answer
  }

  return {
    raise: (event) => raiseDirect(decide, event),
    async attempt(asked) {
      const job = await loadDirect(pool, asked)
      return typeof job === 'string' ? { kind: 'not_sent', reason: job } : call(job, asked)
    },
    async giveUp(which, reason) {
      const delivery = await findDirectDelivery(pool, which)
      if (delivery) await append(skipped({ delivery, reason, occasion: 'given up', now: clock() }))
    },
  }
}

function conclude(outcome: PostOutcome, { judge, isLast }: DirectAttempt): Concluded {
  if (outcome.kind === 'failure') return unaccepted({ kind: 'retry', problem: outcome.message }, isLast)
  const response: DirectResponse = { status: outcome.status, body: outcome.body }
  const judgement = judge(response)
  if (judgement.kind !== 'accepted') return unaccepted(judgement, isLast)
  return { answer: { kind: 'accepted', response }, result: 'succeeded' }
}

function unaccepted({ kind, problem }: Exclude<Judgement, { kind: 'accepted' }>, isLast: boolean): Concluded {
  if (kind === 'refuse' || isLast) return { answer: { kind: 'failed', problem }, result: 'failed', problem }
  return { answer: { kind: 'retry', problem }, result: 'retrying', problem }
}

interface Told {
  job: DirectJob
  number: number
  met: Answer
  result: WebhookAttemptOutcome
}

function tell(logger: Logger, { job, number, met: { outcome }, result }: Told): void {
  const { delivery, event, endpoint } = job
  const line = {
    organizationId: event.organization_id,
    eventId: event.id,
    deliveryId: delivery.id,
    endpointId: endpoint.id,
    attempt: number,
    outcome: result,
    durationMs: outcome.durationMs,
    ...(outcome.kind === 'response' ? { status: outcome.status } : { reason: outcome.reason }),
  }
  if (result === 'succeeded') logger.debug(line, 'webhook delivered directly')
  else logger.info(line, 'webhook not delivered directly')
}
