import type { DeliveryType } from './event-types.ts'

/** What is delivered of an event, as JSON text. `data` is JSON text already and is sent as it is. */
export function webhookBody(event: {
  id: string
  type: DeliveryType
  /** Epoch ms. */
  created_at: number
  data: string
}): string {
  const head = JSON.stringify({
    id: event.id,
    object: 'webhook_event',
    type: event.type,
    created: new Date(event.created_at).toISOString(),
  })
  return `${head.slice(0, -1)},"data":${event.data}}`
}
