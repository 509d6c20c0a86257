import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import { hrefWith } from '../shared/address.ts'
import { DataTable } from '../shared/data-table.tsx'
import { formatDateTime, formatDuration, formatNumber, formatPercent } from '../shared/format.ts'
import { Panel } from '../shared/panel.tsx'
import { hasScope } from '../shared/person.ts'
import { now } from '../shared/span.ts'
import { RelativeTime } from '../shared/values.tsx'
import { undeliveredStatuses } from './deliveries.tsx'
import { EndpointActions } from './endpoint-actions.tsx'

interface EndpointsProps {
  endpoints: WebhookEndpoint[]
  /** API path of the list. */
  listPath: string
}

export function Endpoints({ endpoints, listPath }: EndpointsProps) {
  if (endpoints.length === 0)
    return <p class="note">No endpoints yet. Add one to receive each verdict when it is made.</p>
  return (
    <Panel title="Endpoints">
      <DataTable
        label="Endpoints"
        rows={endpoints.toSorted((a, b) => urgencyOf(a) - urgencyOf(b))}
        keyOf={({ id }) => id}
        columns={{
          Name: {
            class: 'clip',
            cell: ({ id, name, url }) => (
              <>
                <a href={hrefWith({ endpoint_id: id, open: null })} title={name}>
                  {name}
                </a>
                <br />
                <span class="hint" title={url}>
                  {url}
                </span>
              </>
            ),
          },
          Health: (endpoint) => <HealthBadge {...endpoint} />,
          'Delivered (24 h)': {
            class: 'number',
            cell: (endpoint) => <DeliveryCounts {...endpoint} />,
          },
          Pending: { class: 'number', cell: ({ health }) => formatNumber(health?.pending ?? 0) },
          'Latency p50, p95': { class: 'number', cell: describeLatency },
          Events: {
            class: 'clip',
            cell: ({ event_types, filter }) =>
              `${filter ? 'filtered: ' : ''}${event_types.join(', ')}`,
          },
          Actions:
            hasScope('webhooks:manage') &&
            ((endpoint) => <EndpointActions {...{ endpoint, listPath }} />),
        }}
      />
    </Panel>
  )
}

const order = ['failing', 'healthy', 'idle', 'disabled']
const urgencyOf = ({ health }: WebhookEndpoint) => order.indexOf(health?.status ?? 'disabled')

const disabledTexts = {
  manual: 'Disabled',
  failing: 'Disabled: failed for 5 days',
  gone: 'Disabled: returned 410',
}
const badges = {
  healthy: <span class="badge good">Healthy</span>,
  failing: <span class="badge bad">Failing</span>,
  idle: <span class="badge">No deliveries</span>,
}

function HealthBadge({ disabled_reason, health, previous_secret_ends_at: end }: WebhookEndpoint) {
  if (!health || health.status === 'disabled')
    return <span class="badge warn">{disabledTexts[disabled_reason ?? 'manual']}</span>
  const { status, last_failure: failure } = health
  return (
    <>
      {badges[status]}{' '}
      {status === 'failing' && failure && (
        <a href={hrefWith({ open: failure.event_id })}>
          {failure.response_status ?? 'No response'}, <RelativeTime at={failure.at} />
        </a>
      )}
      {end && Date.parse(end) > now.value && (
        <span class="badge" title={`The previous secret also signs until ${formatDateTime(end)}`}>
          2 secrets
        </span>
      )}
    </>
  )
}

function DeliveryCounts({ id, health }: WebhookEndpoint) {
  if (!health || health.deliveries === 0) return '–'
  const { deliveries, succeeded } = health
  const undelivered = { endpoint_id: id, status: undeliveredStatuses, open: null }
  return (
    <>
      {formatPercent(succeeded, deliveries)} of {formatNumber(deliveries)}
      {succeeded < deliveries && (
        <>
          ,{' '}
          <a href={hrefWith({ ...undelivered, last: '24h', since: null, until: null })}>
            {formatNumber(deliveries - succeeded)} failed
          </a>
        </>
      )}
    </>
  )
}

function describeLatency({ health }: WebhookEndpoint): string {
  const { latency_p50_ms: p50 = null, latency_p95_ms: p95 = null } = health ?? {}
  return p50 === null || p95 === null ? '–' : `${formatLatency(p50)}, ${formatLatency(p95)}`
}

const formatLatency = (ms: number): string =>
  ms < 10_000 ? `${formatNumber(ms)} ms` : formatDuration(ms)
