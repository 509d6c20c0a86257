import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import type { WebhookDelivery, WebhookEvent } from '../../../webhooks/events/schemas.ts'
import { hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { CodeBlock } from '../shared/code-block.tsx'
import { formatNumber, pluralize } from '../shared/format.ts'
import { useKeys } from '../shared/keys.ts'
import { FactList, Panel } from '../shared/panel.tsx'
import { RelativeTime } from '../shared/relative-time.tsx'
import { ScrollRegion } from '../shared/scroll-region.tsx'
import { serverPath } from '../shared/server-path.ts'
import { TableHead } from '../shared/table-head.tsx'

interface EventsProps {
  events: WebhookEvent[]
  endpoints: WebhookEndpoint[]
  /** Id of the endpoint whose events are listed; null for all. */
  endpointId: string | null
  /** Id of the open event. */
  open: string | null
}

export function Events({ events, endpoints, endpointId, open }: EventsProps) {
  useKeys(({ key }) => key === 'Escape' && open && navigate(hrefWith({ open: null })), [open])
  const openEvent = events.find(({ id }) => id === open)
  const nameOf = (id: string) => endpoints.find((endpoint) => endpoint.id === id)?.name ?? id
  return (
    <>
      <Panel title={endpointId ? `Events for ${nameOf(endpointId)}` : 'Events'}>
        {endpointId && (
          <p>
            <a href={hrefWith({ endpoint: null, open: null })}>Show all endpoints</a>
          </p>
        )}
        {events.length === 0 ? (
          <p class="hint">
            No events yet. Create a session on the <a href={`${serverPath}/demo`}>demo page</a>.
          </p>
        ) : (
          <DeliverySummary events={events} />
        )}
        {events.length > 0 && <EventTable events={events} open={open} />}
      </Panel>
      {openEvent && <OpenEvent event={openEvent} nameOf={nameOf} />}
      {open && !openEvent && <p class="note">The event {open} is not among the newest events.</p>}
    </>
  )
}

function DeliverySummary({ events }: { events: WebhookEvent[] }) {
  const deliveries = events.flatMap(({ webhook_deliveries: all }) => all)
  const finished = deliveries.filter(({ status }) => status === 'succeeded' || status === 'failed')
  const firstAttempts = finished.filter(
    ({ status, attempts }) => status === 'succeeded' && attempts === 1,
  )
  const waiting = deliveries.filter(({ status }) => status === 'pending' || status === 'delivering')
  const oldest = waiting.at(-1)
  return (
    <p class="hint">
      Newest {pluralize('event', events.length)}: {formatNumber(firstAttempts.length)} of{' '}
      {pluralize('delivery', finished.length)} succeeded at the first attempt
      {oldest ? (
        <>
          , {formatNumber(waiting.length)} pending, the oldest since{' '}
          <RelativeTime at={oldest.updated_at} />
        </>
      ) : null}
      .
    </p>
  )
}

function EventTable({ events, open }: { events: WebhookEvent[]; open: string | null }) {
  return (
    <ScrollRegion label="Events">
      <table class="rows">
        <TableHead columns={['When', 'Event', 'About', 'Deliveries']} />
        <tbody>
          {events.map(({ id, type, subject, created_at, webhook_deliveries: deliveries }) => (
            <tr key={id} aria-selected={id === open}>
              <td>
                <RelativeTime at={created_at} />
              </td>
              <td>
                <a href={hrefWith({ open: id })}>{type}</a>
              </td>
              <td class="mono">
                {subject.type === 'session' ? (
                  <a href={hrefOf({ page: 'sessions', id: subject.id })}>{subject.id}</a>
                ) : (
                  subject.id
                )}
              </td>
              <td>
                {deliveries.length === 0
                  ? 'no deliveries'
                  : deliveries.map(describeDelivery).join(', ')}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollRegion>
  )
}

const describeDelivery = ({ status, attempts }: WebhookDelivery): string =>
  attempts > 1 ? `${status} after ${attempts} attempts` : status

function OpenEvent({ event, nameOf }: { event: WebhookEvent; nameOf: (id: string) => string }) {
  return (
    <Panel title={event.type}>
      <p>
        <span class="mono">{event.id}</span> · <a href={hrefWith({ open: null })}>Close</a>
      </p>
      {event.webhook_deliveries.map((delivery) => (
        <section key={delivery.id} aria-label={`Delivery to ${nameOf(delivery.endpoint_id)}`}>
          <h3>{nameOf(delivery.endpoint_id)}</h3>
          <FactList
            facts={{
              Status: describeDelivery(delivery),
              'Last attempt': <RelativeTime at={delivery.updated_at} />,
              'Next attempt': delivery.next_attempt_at && (
                <RelativeTime at={delivery.next_attempt_at} />
              ),
              Response: delivery.response_status,
              Error: delivery.error,
            }}
          />
          {delivery.response_body && <CodeBlock code={delivery.response_body} />}
        </section>
      ))}
      <h3>Payload</h3>
      <CodeBlock code={JSON.stringify(event.data, null, 2)} />
      <p>
        How to verify deliveries: <a href={`${serverPath}/docs/guide/webhooks`}>webhook guide</a>
      </p>
    </Panel>
  )
}
