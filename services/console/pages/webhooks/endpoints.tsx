import { useState } from 'preact/hooks'
import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import { hrefWith } from '../shared/address.ts'
import { RequestFailure, send } from '../shared/api.ts'
import { CodeBlock } from '../shared/code-block.tsx'
import { inWords } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import { Panel } from '../shared/parts.tsx'
import { may } from '../shared/person.ts'
import { Scroll } from '../shared/scroll.tsx'
import { now } from '../shared/span.ts'
import { Time } from '../shared/time.tsx'
import { visible } from '../shared/visible.ts'
import type { RunAction } from './action.ts'
import { NewEndpoint } from './new-endpoint.tsx'

interface EndpointsProps {
  endpoints: WebhookEndpoint[]
  /** Of the list, in the API. */
  path: string
}

/** Endpoints with their health, and what the person may do with them. */
export function Endpoints({ endpoints, path }: EndpointsProps) {
  const [said, setSaid] = useState<{
    text: string
    secret?: string | undefined
    isBad?: boolean
  } | null>(null)
  const run: RunAction = async (request, text) => {
    setSaid(null)
    try {
      const answer = await send<{ data: { signing_secret?: string } }>(
        `${path}${request.path}`,
        request,
      )
      setSaid({ text, secret: answer.data.signing_secret })
      return true
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      setSaid({ text: error.message, isBad: true })
      return false
    }
  }
  return (
    <Panel title="Endpoints">
      {endpoints.length === 0 && (
        <p class="hint">
          Nothing is sent anywhere yet. An endpoint of yours is told of each verdict as it is made.
        </p>
      )}
      {endpoints.length > 0 && <EndpointTable endpoints={endpoints} run={run} />}
      {said && (
        <div class={said.isBad ? 'note bad' : 'note'} role={said.isBad ? 'alert' : 'status'}>
          <p>{said.text}</p>
          {said.secret && (
            <>
              <p>This is its signing secret. It is shown this once.</p>
              <CodeBlock code={said.secret} />
            </>
          )}
        </div>
      )}
      {may('webhooks:manage') && <NewEndpoint run={run} />}
    </Panel>
  )
}

function EndpointTable({ endpoints, run }: { endpoints: WebhookEndpoint[]; run: RunAction }) {
  const mayManage = may('webhooks:manage')
  const columns = [
    'Name',
    'Address',
    'Status',
    'Told of',
    'Secret',
    ...(mayManage ? ['Actions'] : []),
  ]
  return (
    <Scroll label="Endpoints">
      <table>
        <Head columns={columns} />
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
                <Overlap end={endpoint.previous_secret_ends_at} />
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
    </Scroll>
  )
}

function healthOf({ status, disabled_reason, flagged_reason }: WebhookEndpoint): string {
  if (status === 'disabled')
    return disabled_reason ? `disabled (${inWords(disabled_reason)})` : 'disabled'
  return flagged_reason ? `active, but ${inWords(flagged_reason)}` : 'active'
}

function Overlap({ end }: { end: string | null }) {
  if (!end || Date.parse(end) <= now.value) return <>one</>
  return (
    <>
      two, the previous one until <Time at={end} />
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
  const other = status === 'active' ? 'disabled' : 'active'
  const turn = { path: `/${id}`, method: 'PATCH', body: { status: other } } as const
  const rotate = () =>
    window.confirm(
      `Make a new secret for ${visible(name)}? The one that it has signs for 24 more hours.`,
    ) && run({ path: `/${id}/rotations`, method: 'POST' }, `${name} has a new secret.`)
  return (
    <div class="actions">
      {status === 'active' && (
        <button
          type="button"
          onClick={() =>
            run({ path: `/${id}/test`, method: 'POST' }, `A test is on its way to ${name}.`)
          }
        >
          Send a test
        </button>
      )}
      <button type="button" onClick={rotate}>
        New secret
      </button>
      <button type="button" onClick={() => run(turn, `${name} is ${other} now.`)}>
        {status === 'active' ? 'Disable' : 'Enable'}
      </button>
    </div>
  )
}
