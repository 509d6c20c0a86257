import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import type { WebhookDelivery, WebhookEvent } from '../../../webhooks/events/schemas.ts'
import { goTo, hrefOf, hrefWith } from '../shared/address.ts'
import { CodeBlock } from '../shared/code-block.tsx'
import { amount, formatNumber } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import { useKeys } from '../shared/keys.ts'
import { FactList, Panel } from '../shared/parts.tsx'
import { Scroll } from '../shared/scroll.tsx'
import { Time } from '../shared/time.tsx'

interface EventsProps {
  events: WebhookEvent[]
  endpoints: WebhookEndpoint[]
  /** Id of the endpoint whose events are listed; null for those of all. */
  chosen: string | null
  /** Id of the event that is open. */
  open: string | null
}

/** The newest events, and what came of telling endpoints of them. */
export function Events({ events, endpoints, chosen, open }: EventsProps) {
  useKeys(({ key }) => key === 'Escape' && open && goTo(hrefWith({ open: null })), [open])
  const opened = events.find(({ id }) => id === open)
  const nameOf = (id: string) => endpoints.find((one) => one.id === id)?.name ?? id
  return (
    <>
      <Panel title={chosen ? `Events for ${nameOf(chosen)}` : 'Events'}>
        {chosen && (
          <p>
            <a href={hrefWith({ endpoint: null, open: null })}>Events of all endpoints</a>
          </p>
        )}
        {events.length === 0 ? (
          <p class="hint">
            Nothing happened yet that is told. Make a session on the <a href="/demo">demo page</a>.
          </p>
        ) : (
          <Came events={events} />
        )}
        {events.length > 0 && <EventTable events={events} open={open} />}
      </Panel>
      {opened && <OpenEvent event={opened} nameOf={nameOf} />}
      {open && !opened && <p class="note">The event {open} is not among the newest ones.</p>}
    </>
  )
}

function Came({ events }: { events: WebhookEvent[] }) {
  const deliveries = events.flatMap(({ webhook_deliveries: all }) => all)
  const ended = deliveries.filter(({ status }) => status === 'succeeded' || status === 'failed')
  const atOnce = ended.filter(({ status, attempts }) => status === 'succeeded' && attempts === 1)
  const waiting = deliveries.filter(({ status }) => status === 'pending' || status === 'delivering')
  const oldest = waiting.at(-1)
  return (
    <p class="hint">
      Of the newest {amount('event', events.length)}, {formatNumber(atOnce.length)} of{' '}
      {amount('delivery', ended.length)} came at the first try
      {oldest ? (
        <>
          , and {formatNumber(waiting.length)} wait, the oldest since{' '}
          <Time at={oldest.updated_at} />
        </>
      ) : null}
      .
    </p>
  )
}

function EventTable({ events, open }: { events: WebhookEvent[]; open: string | null }) {
  return (
    <Scroll label="Events">
      <table class="rows">
        <Head columns={['When', 'Event', 'About', 'Deliveries']} />
        <tbody>
          {events.map(({ id, type, subject, created_at, webhook_deliveries: deliveries }) => (
            <tr key={id} aria-selected={id === open}>
              <td>
                <Time at={created_at} />
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
                {deliveries.length === 0 ? 'told to nobody' : deliveries.map(inShort).join(', ')}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

const inShort = ({ status, attempts }: WebhookDelivery): string =>
  attempts > 1 ? `${status} after ${attempts} tries` : status

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
              Status: inShort(delivery),
              'Tried last': <Time at={delivery.updated_at} />,
              'Next try': delivery.next_attempt_at && <Time at={delivery.next_attempt_at} />,
              Answer: delivery.response_status,
              Error: delivery.error,
            }}
          />
          {delivery.response_body && <CodeBlock code={delivery.response_body} />}
        </section>
      ))}
      <h3>What is sent</h3>
      <CodeBlock code={JSON.stringify(event.data, null, 2)} />
      <p>
        What a receiver has to do is in the <a href="/docs/guide/webhooks">guide to webhooks</a>.
      </p>
    </Panel>
  )
}
