import { useRef } from 'preact/hooks'
import type { ApiKey } from '../../../organizations/schemas.ts'
import type { SessionList } from '../../../readback/schemas/sessions.ts'
import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import { currentPage, hrefOf } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { Panel } from '../shared/panel.tsx'
import { organizationPath } from '../shared/person.ts'
import { serverPath } from '../shared/server-path.ts'

const pollMs = 30_000
// The step "Attach a user id" is done once one of the newest sessions has a user.
const newestSessionsPath = '/v1/sessions?limit=50'

/** Setup checklist of the environment. Renders nothing while loading and once complete. */
export function GettingStarted() {
  const path = organizationPath()
  const isComplete = useRef(false)
  const polling = { pollMs: isComplete.current ? undefined : pollMs }
  const keys = useResponse<{ data: ApiKey[] }>(`${path}/api-keys`, polling).data?.data
  const endpoints = useResponse<{ data: WebhookEndpoint[] }>(`${path}/webhooks/endpoints`, polling)
    .data?.data
  const sessions = useResponse<SessionList>(newestSessionsPath, polling).data?.data
  if (!keys || !endpoints || !sessions) return null
  const isUsable = ({ type, status, environment }: ApiKey) =>
    type === 'publishable' && status === 'active' && environment === currentPage.value?.environment
  const steps = [
    {
      title: 'Add the snippet with your publishable key to a page',
      page: 'settings',
      isDone: keys.some(isUsable),
    },
    { title: 'Send a first session', page: 'settings', isDone: sessions.length > 0 },
    {
      title: 'Attach a user id to a session from your back end',
      page: 'sessions',
      isDone: sessions.some(({ client_user_id }) => client_user_id !== null),
    },
    {
      title: 'Add a webhook to receive verdicts',
      page: 'webhooks',
      isDone: endpoints.some(({ status }) => status === 'active'),
    },
  ] as const
  isComplete.current = steps.every(({ isDone }) => isDone)
  if (isComplete.current) return null
  return (
    <Panel title="Getting started">
      <ul class="to-do">
        {steps.map(({ title, page, isDone }) => (
          <li key={title}>
            <span aria-hidden="true">{isDone ? '☑' : '☐'}</span>{' '}
            {isDone ? <s>{title}</s> : <a href={hrefOf({ page })}>{title}</a>}
            <span class="hidden">{isDone ? ', done' : ', to do'}</span>
          </li>
        ))}
      </ul>
      <p class="hint">
        Try it on the <a href={`${serverPath}/demo`}>demo page</a>, or read the{' '}
        <a href={`${serverPath}/docs/guide/browser-sdk`}>guide</a>.
      </p>
    </Panel>
  )
}
