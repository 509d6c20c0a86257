import type { WebhookDelivery, WebhookEvent } from '../../../webhooks/events/schemas.ts'
import { hrefOf, hrefWith, serverPath } from '../shared/address.ts'
import { useLinkKeys } from '../shared/keys.ts'
import { ListTable, usePages } from '../shared/pages.tsx'
import { Panel } from '../shared/panel.tsx'
import { RelativeTime } from '../shared/values.tsx'

interface EventsProps {
  /** API path of the list. */
  path: string
  /** Id of the open event. */
  open: string | null
}

/** All events, also those that no endpoint receives. */
export function Events({ path, open }: EventsProps) {
  useLinkKeys('[data-row]', open)
  return (
    <Panel title="Events">
      <ListTable
        label="Events"
        list={usePages<WebhookEvent>(path, { pollMs: 5000 })}
        empty={
          <p class="hint">
            No events yet. Create a session on the <a href={`${serverPath}/demo`}>demo page</a>.
          </p>
        }
        keyOf={({ id }) => id}
        openKey={open}
        columns={{
          Time: ({ created_at }) => <RelativeTime at={created_at} />,
          Event: (event) => <EventLink {...event} />,
          Subject: { class: 'mono', cell: (event) => <Subject {...event.subject} /> },
          Deliveries: (event) => <Deliveries {...event} />,
        }}
      />
    </Panel>
  )
}

/** Opens the event beside the list. */
export function EventLink({ id, type }: Pick<WebhookEvent, 'id' | 'type'>) {
  return (
    <a href={hrefWith({ open: id })} data-row={id}>
      {type}
    </a>
  )
}

export function Subject({ type, id }: WebhookEvent['subject']) {
  return type === 'session' ? (
    <a href={hrefOf({ page: 'sessions', id })}>{id}</a>
  ) : (
    <span>{id}</span>
  )
}

function Deliveries({ webhook_deliveries: deliveries }: WebhookEvent) {
  if (deliveries.length === 0) return <span class="hint">No endpoint</span>
  return deliveries.map((delivery) => <DeliveryBadge key={delivery.id} {...delivery} />)
}

const badgeClasses: Record<string, string> = { succeeded: 'good', failed: 'bad', skipped: 'warn' }

export function DeliveryBadge({ status, attempts, response_status }: WebhookDelivery) {
  const isRetrying = status === 'pending' && attempts > 0
  return (
    <span class={`badge ${isRetrying ? 'bad' : (badgeClasses[status] ?? '')}`}>
      {isRetrying ? 'retrying' : status} {response_status}
    </span>
  )
}
