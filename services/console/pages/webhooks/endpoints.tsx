import { useState } from 'preact/hooks'
import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import { hrefWith } from '../shared/address.ts'
import { callApi, RequestFailure } from '../shared/api.ts'
import { CodeBlock } from '../shared/code-block.tsx'
import { escapeInvisible } from '../shared/escape-invisible.ts'
import { inWords } from '../shared/format.ts'
import { Panel } from '../shared/panel.tsx'
import { hasScope } from '../shared/person.ts'
import { RelativeTime } from '../shared/relative-time.tsx'
import { ScrollRegion } from '../shared/scroll-region.tsx'
import { now } from '../shared/span.ts'
import { TableHead } from '../shared/table-head.tsx'
import { NewEndpoint } from './new-endpoint.tsx'
import type { RunAction } from './run-action.ts'

interface EndpointsProps {
  endpoints: WebhookEndpoint[]
  /** API path of the list. */
  path: string
}

export function Endpoints({ endpoints, path }: EndpointsProps) {
  const [notice, setNotice] = useState<{
    text: string
    secret?: string | undefined
    isBad?: boolean
  } | null>(null)
  const run: RunAction = async (request, successText) => {
    setNotice(null)
    try {
      const response = await callApi<{ data: { signing_secret?: string } }>(
        `${path}${request.path}`,
        request,
      )
      setNotice({ text: successText, secret: response.data.signing_secret })
      return true
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      setNotice({ text: error.message, isBad: true })
      return false
    }
  }
  return (
    <Panel title="Endpoints">
      {endpoints.length === 0 && (
        <p class="hint">No endpoints yet. Add one to receive each verdict when it is made.</p>
      )}
      {endpoints.length > 0 && <EndpointTable endpoints={endpoints} run={run} />}
      {notice && (
        <div class={notice.isBad ? 'note bad' : 'note'} role={notice.isBad ? 'alert' : 'status'}>
          <p>{notice.text}</p>
          {notice.secret && (
            <>
              <p>Signing secret (shown only once):</p>
              <CodeBlock code={notice.secret} />
            </>
          )}
        </div>
      )}
      {hasScope('webhooks:manage') && <NewEndpoint run={run} />}
    </Panel>
  )
}

function EndpointTable({ endpoints, run }: { endpoints: WebhookEndpoint[]; run: RunAction }) {
  const mayManage = hasScope('webhooks:manage')
  const columns = ['Name', 'URL', 'Status', 'Events', 'Secret', ...(mayManage ? ['Actions'] : [])]
  return (
    <ScrollRegion label="Endpoints">
      <table>
        <TableHead columns={columns} />
        <tbody>
          {endpoints.map((endpoint) => (
            <tr key={endpoint.id}>
              <td class="long">
                <a href={hrefWith({ endpoint: endpoint.id, open: null })}>{endpoint.name}</a>
              </td>
              <td class="mono long">{endpoint.url}</td>
              <td>{healthOf(endpoint)}</td>
              <td>{endpoint.event_types.join(', ')}</td>
              <td>
                <SecretStatus previousEndsAt={endpoint.previous_secret_ends_at} />
              </td>
              {mayManage && (
                <td>
                  <Actions endpoint={endpoint} run={run} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollRegion>
  )
}

function healthOf({ status, disabled_reason, flagged_reason }: WebhookEndpoint): string {
  if (status === 'disabled')
    return disabled_reason ? `disabled (${inWords(disabled_reason)})` : 'disabled'
  return flagged_reason ? `active, but ${inWords(flagged_reason)}` : 'active'
}

function SecretStatus({ previousEndsAt }: { previousEndsAt: string | null }) {
  if (!previousEndsAt || Date.parse(previousEndsAt) <= now.value) return <>current</>
  return (
    <>
      current, and the previous one until <RelativeTime at={previousEndsAt} />
    </>
  )
}

function Actions({
  endpoint: { id, name, status },
  run,
}: {
  endpoint: WebhookEndpoint
  run: RunAction
}) {
  const newStatus = status === 'active' ? 'disabled' : 'active'
  const toggle = { path: `/${id}`, method: 'PATCH', body: { status: newStatus } } as const
  const rotate = () =>
    window.confirm(
      `Rotate the secret of ${escapeInvisible(name)}? The current one also signs for 24 more hours.`,
    ) && run({ path: `/${id}/rotations`, method: 'POST' }, `Rotated the secret of ${name}.`)
  return (
    <div class="actions">
      {status === 'active' && (
        <button
          type="button"
          onClick={() =>
            run({ path: `/${id}/test`, method: 'POST' }, `Sent a test event to ${name}.`)
          }
        >
          Send test event
        </button>
      )}
      <button type="button" onClick={rotate}>
        Rotate secret
      </button>
      <button type="button" onClick={() => run(toggle, `${name} is now ${newStatus}.`)}>
        {status === 'active' ? 'Disable' : 'Enable'}
      </button>
    </div>
  )
}
