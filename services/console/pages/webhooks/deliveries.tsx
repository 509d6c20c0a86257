import { deliveryTypes } from '../../../../infra/wire/webhooks/events.ts'
import type { WebhookDelivery } from '../../../webhooks/events/schemas.ts'
import { hrefOf } from '../shared/address.ts'
import { formatNumber } from '../shared/format.ts'
import { useLinkKeys } from '../shared/keys.ts'
import { FilterSelect } from '../shared/list-filters.tsx'
import { ListTable, usePages } from '../shared/pages.tsx'
import { Panel } from '../shared/panel.tsx'
import { now, spanOf } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import { RelativeTime } from '../shared/values.tsx'
import { DeliveryBadge, EventLink } from './events.tsx'

/** Statuses of deliveries that did not arrive so far. */
export const undeliveredStatuses = ['failed', 'pending']

const statuses = [
  [undeliveredStatuses.join(' '), 'failed or pending'],
  ...['failed', 'pending', 'succeeded', 'skipped'].map((name) => [name, name] as const),
] as const
const types = deliveryTypes.map((name) => [name, name] as const)

interface DeliveriesProps {
  /** API path of the list. */
  path: string
  /** Name of the endpoint. */
  name: string
  query: URLSearchParams
  /** Id of the open event. */
  open: string | null
}

/** The deliveries to an endpoint. */
export function Deliveries({ path, name, query, open }: DeliveriesProps) {
  useLinkKeys('[data-row]', open)
  return (
    <Panel title={`Deliveries to ${name}`}>
      <div class="title">
        <div class="filters">
          <FilterSelect name="status" label="Statuses" options={statuses} query={query} />
          <FilterSelect name="type" label="Events" options={types} query={query} />
          <a href={hrefOf({ page: 'webhooks' })}>Show all endpoints</a>
        </div>
        <SpanChoice span={spanOf(query, now.value)} />
      </div>
      <ListTable
        label="Deliveries"
        list={usePages<WebhookDelivery>(path, { pollMs: 5000 })}
        empty={<p class="hint">No deliveries match these filters in this period.</p>}
        keyOf={({ event_id }) => event_id}
        openKey={open}
        columns={{
          Time: ({ created_at }) => <RelativeTime at={created_at} />,
          Status: (delivery) => <DeliveryBadge {...delivery} />,
          Event: ({ event_id, event_type }) => <EventLink id={event_id} type={event_type} />,
          Attempts: { class: 'number', cell: ({ attempts }) => formatNumber(attempts) },
          'Next attempt': ({ next_attempt_at: next }) => next && <RelativeTime at={next} />,
          Error: {
            class: 'clip',
            cell: ({ response_status, error }) => (response_status ? null : error),
          },
        }}
      />
    </Panel>
  )
}
