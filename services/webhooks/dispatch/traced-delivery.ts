import type { SpanAttributes, Tracing } from '../../../infra/otlp/port.ts'
import type { Job, MadeDelivery } from './deliver.ts'

/** `mayBegin`: called before the first byte is sent; where it returns false, nothing is. */
export type Deliver = (job: Job, mayBegin: () => boolean) => Promise<MadeDelivery | undefined>

/** Each attempt is a span below the event that it delivers, and its record below that. */
export function tracedDelivery(deliver: Deliver, tracing: Tracing | undefined): Deliver {
  if (!tracing) return deliver
  return (job, mayBegin) => {
    const parent = job.delivery.traceparent ?? undefined
    return tracing.run(
      { name: 'webhook attempt', parent, attributes: attributesOf(job) },
      async (span) => {
        const delivered = await deliver(job, mayBegin)
        if (!delivered) return undefined
        span.set(resultOf(delivered))
        if (delivered.made && delivered.made.result !== 'succeeded') span.fail()
        const { event, meta } = delivered.decision
        return {
          ...delivered,
          decision: { event, meta: { ...meta, traceparent: span.traceparent } },
        }
      },
    )
  }
}

// Not the receiver's address: it may hold a token.
const attributesOf = ({ delivery, event }: Job): SpanAttributes => ({
  'tidegate.webhook.event_id': event.id,
  'tidegate.webhook.event_type': event.type,
  'tidegate.webhook.endpoint_id': delivery.endpointId,
  'tidegate.webhook.attempt': delivery.attempts + 1,
  'tidegate.organization_id': delivery.organizationId,
})

function resultOf({ made }: MadeDelivery): SpanAttributes {
  const outcome = made?.outcome
  if (!outcome) return { 'tidegate.webhook.outcome': 'skipped' }
  if (outcome.kind === 'failure') return { 'error.type': outcome.reason }
  return { 'http.response.status_code': outcome.status }
}
