import type { SpanAttributes, Tracing } from '../../../infra/otlp/port.ts'
import type { DeliveryJob, FinishedDelivery } from './deliver.ts'

/** Sends one delivery. `canSend` is called right before; if it returns false, nothing is sent. */
export type Deliver = (
  job: DeliveryJob,
  canSend: () => boolean,
) => Promise<FinishedDelivery | undefined>

/** Runs each delivery in a span of the event's trace. The record of the attempt is a child of that span. */
export function tracedDelivery(deliver: Deliver, tracing: Tracing | undefined): Deliver {
  if (!tracing) return deliver
  return (job, canSend) => {
    const parent = job.delivery.traceparent ?? undefined
    return tracing.runInSpan(
      { name: 'webhook attempt', parent, attributes: attributesOf(job) },
      async (span) => {
        const delivery = await deliver(job, canSend)
        if (!delivery) return undefined
        span.setAttributes(resultOf(delivery))
        if (delivery.attempt && delivery.attempt.result !== 'succeeded') span.markFailed()
        const { event, meta } = delivery.decision
        return {
          ...delivery,
          decision: { event, meta: { ...meta, traceparent: span.traceparent } },
        }
      },
    )
  }
}

// Omits the receiver's URL, which may contain a token.
const attributesOf = ({ delivery, event }: DeliveryJob): SpanAttributes => ({
  'tidegate.webhook.event_id': event.id,
  'tidegate.webhook.event_type': event.type,
  'tidegate.webhook.endpoint_id': delivery.endpointId,
  'tidegate.webhook.attempt': delivery.attempts + 1,
  'tidegate.organization_id': delivery.organizationId,
})

function resultOf({ attempt }: FinishedDelivery): SpanAttributes {
  const outcome = attempt?.outcome
  if (!outcome) return { 'tidegate.webhook.outcome': 'skipped' }
  if (outcome.kind === 'failure') return { 'error.type': outcome.reason }
  return { 'http.response.status_code': outcome.status }
}
