import type { WebhookDelivery, WebhookEvent } from '../../../webhooks/events/schemas.ts'
import { hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { DataTable } from '../shared/data-table.tsx'
import { useFocusOnClose, usePageKeys } from '../shared/keys.ts'
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
              cell: ({ id, type }) => (
                <a href={hrefWith({ open: id })} data-event={id}>
                  {type}
                </a>
              ),
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

const focusEvent = (id: string) =>
  document.querySelector<HTMLElement>(`[data-event="${CSS.escape(id)}"]`)?.focus()

/** Moves through the events with `j` and `k`, and closes with Esc. The focus is the current event. */
function useEventKeys(events: WebhookEvent[], open: string | null): void {
  const ids = events.map(({ id }) => id)
  usePageKeys(
    ({ key, target }) => {
      const focused = target instanceof HTMLElement ? target.dataset.event : undefined
      const current = focused ?? open
      const step = { j: 1, k: -1 }[key]
      const next = step && ids[current ? ids.indexOf(current) + step : 0]
      if (next) {
        focusEvent(next)
        if (open) navigate(hrefWith({ open: next }), { replace: true })
      }
      if (key === 'Escape' && open) navigate(hrefWith({ open: null }))
    },
    [ids.join(), open],
  )
  useFocusOnClose(open, focusEvent)
}
