import type { WebhookDelivery, WebhookEvent } from '../../../webhooks/events/schemas.ts'
import { hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { DataTable } from '../shared/data-table.tsx'
import { usePageKeys } from '../shared/keys.ts'
import { Panel } from '../shared/panel.tsx'
import { RelativeTime } from '../shared/relative-time.tsx'
import { serverPath } from '../shared/server-path.ts'

interface EventsProps {
  events: WebhookEvent[]
  /** Name of the endpoint whose events are listed; null for all. */
  endpointName: string | null
  /** Id of the open event. */
  open: string | null
}

export function Events({ events, endpointName, open }: EventsProps) {
  useEventKeys(events, open)
  return (
    <Panel title={endpointName ? `Events for ${endpointName}` : 'Events'}>
      {endpointName && <a href={hrefWith({ endpoint: null, open: null })}>Show all endpoints</a>}
      {events.length === 0 ? (
        <p class="hint">
          No events yet. Create a session on the <a href={`${serverPath}/demo`}>demo page</a>.
        </p>
      ) : (
        <DataTable
          label="Events"
          rows={events}
          keyOf={({ id }) => id}
          openKey={open}
          columns={[
            { title: 'Time', cell: ({ created_at }) => <RelativeTime at={created_at} /> },
            {
              title: 'Event',
              cell: ({ id, type }) => <a href={hrefWith({ open: id })}>{type}</a>,
            },
            { title: 'Subject', class: 'mono', cell: ({ subject }) => <Subject {...subject} /> },
            { title: 'Deliveries', cell: (event) => <Deliveries {...event} /> },
          ]}
        />
      )}
    </Panel>
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
  return deliveries.map((delivery) => <DeliveryBadge key={delivery.id} delivery={delivery} />)
}

const badgeClasses = {
  pending: '',
  delivering: '',
  succeeded: 'good',
  failed: 'bad',
  skipped: 'warn',
}

export function DeliveryBadge({ delivery }: { delivery: WebhookDelivery }) {
  const { status, attempts, response_status } = delivery
  const isRetrying = status === 'pending' && attempts > 0
  return (
    <span class={`badge ${isRetrying ? 'bad' : badgeClasses[status]}`}>
      {isRetrying ? 'retrying' : status} {response_status}
    </span>
  )
}

/** Opens events with j and k, closes with Esc, and goes to the session of the open one with Enter. */
function useEventKeys(events: WebhookEvent[], open: string | null): void {
  const ids = events.map(({ id }) => id)
  const index = open ? ids.indexOf(open) : -1
  const subject = events[index]?.subject
  usePageKeys(
    ({ key, target }) => {
      const step = { j: 1, k: -1 }[key]
      const next = step && ids[index < 0 ? 0 : index + step]
      if (next) navigate(hrefWith({ open: next }), { replace: open !== null })
      const hasMenu = document.querySelector(':popover-open') !== null
      if (key === 'Escape' && open && !hasMenu) navigate(hrefWith({ open: null }))
      if (key === 'Enter' && target === document.body && subject?.type === 'session')
        navigate(hrefOf({ page: 'sessions', id: subject.id }))
    },
    [ids.join(), open],
  )
}
