import './webhooks.css'
import type { WebhookAttempt } from '../../../webhooks/deliveries/schemas.ts'
import type { WebhookDelivery, WebhookEvent } from '../../../webhooks/events/schemas.ts'
import { hrefWith, serverPath } from '../shared/address.ts'
import { callApi, useResponse } from '../shared/api.ts'
import { CodeBlock } from '../shared/code-block.tsx'
import { formatNumber } from '../shared/format.ts'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { FactPanel, Panel } from '../shared/panel.tsx'
import { hasScope, organizationPath } from '../shared/person.ts'
import { RelativeTime } from '../shared/values.tsx'
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
            <FactPanel
              title={event.type}
              facts={{
                Event: <span class="mono">{event.id}</span>,
                Created: <RelativeTime at={event.created_at} />,
                Subject: <Subject {...event.subject} />,
              }}
            />
            {event.webhook_deliveries.length === 0 && (
              <p class="note">Not sent: no endpoint was subscribed, or a filter excluded it.</p>
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
  const { run, failure, isRunning } = useMutation()
  const { status, attempts, next_attempt_at: next, error } = delivery
  const path = `${organizationPath()}/webhooks/deliveries/${delivery.id}`
  const isEnded = status !== 'pending' && status !== 'delivering'
  const isRetryable = isEnded && delivery.event_type !== 'gate.session.approved'
  const retry = () => run(async () => void (await callApi(`${path}/retry`, { method: 'POST' })))
  return (
    <section class="panel" aria-label={`Delivery to ${endpoint}`}>
      <header class="title">
        <h2>{endpoint}</h2>
        <span class="row">
          <DeliveryBadge {...delivery} />
          {isRetryable && hasScope('webhooks:manage') && (
            <button type="button" disabled={isRunning} onClick={retry}>
              {status === 'succeeded' ? 'Send again' : 'Retry'}
            </button>
          )}
        </span>
      </header>
      <MutationFailure failure={failure} />
      {next && (
        <p>
          Next attempt <RelativeTime at={next} />
        </p>
      )}
      {status === 'skipped' && <p>{error}</p>}
      {attempts > 0 && <Attempts path={`${path}/attempts`} />}
    </section>
  )
}

function Attempts({ path }: { path: string }) {
  const response = useResponse<{ data: WebhookAttempt[] }>(path, { pollMs: 5000 })
  return (
    <Loaded response={response}>
      {({ data }) =>
        data
          .toReversed()
          .map((attempt) => (
            <Attempt key={attempt.attempt} {...attempt} isNewest={attempt === data.at(-1)} />
          ))
      }
    </Loaded>
  )
}

function Attempt({ isNewest, ...attempt }: WebhookAttempt & { isNewest: boolean }) {
  const { succeeded, response_status: status, response_body: body, request_headers } = attempt
  const headers = Object.entries(request_headers ?? {}).map(([name, value]) => `${name}: ${value}`)
  return (
    <details class="attempt" open={isNewest}>
      <summary>
        Attempt {attempt.attempt}{' '}
        <span class={`badge ${succeeded ? 'good' : 'bad'}`}>{status ?? 'No response'}</span>{' '}
        <RelativeTime at={attempt.attempted_at} />, {formatNumber(attempt.duration_ms)} ms
      </summary>
      {attempt.error && <p>{attempt.error}</p>}
      {body && <CodeBlock code={body} />}
      {request_headers && (
        <details>
          <summary>Request headers</summary>
          <CodeBlock code={headers.join('\n')} />
        </details>
      )}
    </details>
  )
}
