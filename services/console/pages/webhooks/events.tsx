import type { WebhookDelivery, WebhookEvent } from '../../../webhooks/events/schemas.ts'
import { hrefOf, hrefWith, navigate, serverPath } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { DataTable } from '../shared/data-table.tsx'
import { useFocusOnClose, usePageKeys } from '../shared/keys.ts'
import { Panel } from '../shared/panel.tsx'
import { RelativeTime } from '../shared/values.tsx'
import { Loaded } from '../shell/loaded.tsx'

interface EventsProps {
  /** API path of the list. */
  path: string
  /** Id of the open event. */
  open: string | null
}

/** The newest events, also those that no endpoint receives. */
export function Events({ path, open }: EventsProps) {
  const response = useResponse<{ data: WebhookEvent[] }>(path, { pollMs: 5000 })
  useEventKeys(response.data?.data.map(({ id }) => id) ?? [], open)
  return (
    <Loaded response={response} lines={8}>
      {({ data }) => (
        <Panel title="Events">
          {data.length === 0 ? (
            <p class="hint">
              No events yet. Create a session on the <a href={`${serverPath}/demo`}>demo page</a>.
            </p>
          ) : (
            <DataTable
              label="Events"
              rows={data}
              keyOf={({ id }) => id}
              openKey={open}
              columns={[
                { title: 'Time', cell: ({ created_at }) => <RelativeTime at={created_at} /> },
                { title: 'Event', cell: (event) => <EventLink {...event} /> },
                {
                  title: 'Subject',
                  class: 'mono',
                  cell: (event) => <Subject {...event.subject} />,
                },
                { title: 'Deliveries', cell: (event) => <Deliveries {...event} /> },
              ]}
            />
          )}
        </Panel>
      )}
    </Loaded>
  )
}

/** Opens the event beside the list. */
export function EventLink({ id, type }: Pick<WebhookEvent, 'id' | 'type'>) {
  return (
    <a href={hrefWith({ open: id })} data-event={id}>
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

const focusEvent = (id: string) =>
  document.querySelector<HTMLElement>(`[data-event="${CSS.escape(id)}"]`)?.focus()

/** Moves through the events with `j` and `k`, and closes with Esc. The focus is the current event. */
export function useEventKeys(ids: readonly string[], open: string | null): void {
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
