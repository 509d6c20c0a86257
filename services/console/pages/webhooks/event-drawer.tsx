import './webhooks.css'
import type { WebhookDelivery, WebhookEvent } from '../../../webhooks/events/schemas.ts'
import { hrefWith } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { CodeBlock } from '../shared/code-block.tsx'
import { FactList, Panel } from '../shared/panel.tsx'
import { RelativeTime } from '../shared/relative-time.tsx'
import { serverPath } from '../shared/server-path.ts'
import { Loaded } from '../shell/loaded.tsx'
import { DeliveryBadge, Subject } from './events.tsx'

interface EventDrawerProps {
  /** API path of the event. */
  path: string
  nameOf: (endpointId: string) => string
}

/** An event with its deliveries and payload. */
export function EventDrawer({ path, nameOf }: EventDrawerProps) {
  const response = useResponse<{ data: WebhookEvent }>(path, { pollMs: 2000 })
  return (
    <aside class="drawer" aria-label="Event">
      <header class="title">
        <h2>Event</h2>
        <a class="close" href={hrefWith({ open: null })} aria-label="Close">
          ×
        </a>
      </header>
      <Loaded response={response} lines={12}>
        {({ data: event }) => (
          <>
            <Panel title={event.type}>
              <FactList
                facts={{
                  Event: <span class="mono">{event.id}</span>,
                  Created: <RelativeTime at={event.created_at} />,
                  Subject: <Subject {...event.subject} />,
                }}
              />
            </Panel>
            {event.webhook_deliveries.length === 0 && (
              <p class="note">No endpoint was subscribed to this event.</p>
            )}
            {event.webhook_deliveries.map((delivery) => (
              <Delivery
                key={delivery.id}
                delivery={delivery}
                endpoint={nameOf(delivery.endpoint_id)}
              />
            ))}
            <Panel title="Payload">
              <CodeBlock code={JSON.stringify(event.data, null, 2)} />
            </Panel>
            <p>
              <a href={`${serverPath}/docs/guide/webhooks`}>Verify deliveries</a>
            </p>
          </>
        )}
      </Loaded>
    </aside>
  )
}

function Delivery({ delivery, endpoint }: { delivery: WebhookDelivery; endpoint: string }) {
  const { attempts, next_attempt_at: next } = delivery
  return (
    <section class="panel" aria-label={`Delivery to ${endpoint}`}>
      <header class="title">
        <h2>{endpoint}</h2>
        <DeliveryBadge delivery={delivery} />
      </header>
      <FactList
        facts={{
          Attempts: attempts,
          'Last attempt': attempts > 0 ? <RelativeTime at={delivery.updated_at} /> : null,
          'Next attempt': next && <RelativeTime at={next} />,
          Result: delivery.error ?? delivery.response_status,
          Response: delivery.response_body && <CodeBlock code={delivery.response_body} />,
        }}
      />
    </section>
  )
}
