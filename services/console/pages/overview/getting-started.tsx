import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { ApiKey } from '../../../organizations/schemas.ts'
import type { SessionList } from '../../../readback/schemas/sessions.ts'
import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import { currentPage, hrefOf, serverPath } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { Panel } from '../shared/panel.tsx'
import { organizationPath } from '../shared/person.ts'
import { Skeleton } from '../shell/loaded.tsx'

const pollMs = 30_000
// The step "Attach a user id" is done once one of the newest sessions has a user.
const newestSessionsPath = '/v1/sessions?limit=50'

interface GettingStartedProps {
  /** Called once the setup is complete or dismissed. */
  finish: () => void
  /** The rest of the page, shown once there is a session. */
  children: ComponentChildren
}

/** Setup checklist of the environment. Without any session, it is the page. */
export function GettingStarted({ finish, children }: GettingStartedProps) {
  const path = organizationPath()
  const keys = useResponse<{ data: ApiKey[] }>(`${path}/api-keys`, { pollMs })
  const endpoints = useResponse<{ data: WebhookEndpoint[] }>(`${path}/webhooks/endpoints`, {
    pollMs,
  })
  const sessions = useResponse<SessionList>(newestSessionsPath, { pollMs })
  const steps =
    keys.data && endpoints.data && sessions.data
      ? stepsOf(keys.data.data, endpoints.data.data, sessions.data.data)
      : []
  const isShown = steps.some(({ isDone }) => !isDone)
  const isComplete = steps.length > 0 && !isShown
  useEffect(() => {
    if (isComplete) finish()
  }, [isComplete])
  if ([keys, endpoints, sessions].some(({ data, failure }) => !data && !failure))
    return <Skeleton lines={8} />
  const hasNoSession = sessions.data?.data.length === 0
  return (
    <>
      {isShown && (
        <Panel title="Getting started">
          <ol class="steps">
            {steps.map(({ title, page, isDone }) => (
              <li key={title}>
                <span aria-hidden="true">{isDone ? '☑' : '☐'}</span>{' '}
                {isDone ? <s>{title}</s> : <a href={hrefOf({ page })}>{title}</a>}
                <span class="hidden">{isDone ? ', done' : ', to do'}</span>
              </li>
            ))}
          </ol>
          <p class="hint">
            Try it on the <a href={`${serverPath}/demo`}>demo page</a>, or read the{' '}
            <a href={`${serverPath}/docs/guide/browser-sdk`}>guide</a>.{' '}
            {!hasNoSession && (
              <button type="button" class="plain" onClick={finish}>
                Dismiss
              </button>
            )}
          </p>
        </Panel>
      )}
      {!(isShown && hasNoSession) && children}
    </>
  )
}

function stepsOf(keys: ApiKey[], endpoints: WebhookEndpoint[], sessions: SessionList['data']) {
  const isUsable = ({ type, status, environment }: ApiKey) =>
    type === 'publishable' && status === 'active' && environment === currentPage.value?.environment
  return [
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
}
