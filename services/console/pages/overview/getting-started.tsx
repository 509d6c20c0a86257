import { useRef } from 'preact/hooks'
import type { ApiKey } from '../../../organizations/schemas.ts'
import type { SessionList } from '../../../readback/schemas/sessions.ts'
import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import { hrefOf, place } from '../shared/address.ts'
import { useAnswer } from '../shared/api.ts'
import { Panel } from '../shared/parts.tsx'
import { organizationPath } from '../shared/person.ts'
import { serverPath } from '../shared/server-path.ts'

const waitMs = 30_000
// A user among the newest sessions is enough.
const newest = '/v1/sessions?limit=50'

/** What is left to set up in the environment; nothing once all is there, or while it is not known. */
export function GettingStarted() {
  const path = organizationPath()
  const isOver = useRef(false)
  const waiting = { everyMs: isOver.current ? undefined : waitMs }
  const keys = useAnswer<{ data: ApiKey[] }>(`${path}/api-keys`, waiting).data?.data
  const endpoints = useAnswer<{ data: WebhookEndpoint[] }>(`${path}/webhooks/endpoints`, waiting)
    .data?.data
  const sessions = useAnswer<SessionList>(newest, waiting).data?.data
  if (!keys || !endpoints || !sessions) return null
  const isUsable = ({ type, status, environment }: ApiKey) =>
    type === 'publishable' && status === 'active' && environment === place.value?.environment
  const steps = [
    {
      title: 'A publishable key, with a snippet for your pages',
      page: 'settings',
      isDone: keys.some(isUsable),
    },
    { title: 'A first session', page: 'settings', isDone: sessions.length > 0 },
    {
      title: 'A user id, attached to a session by your back end',
      page: 'sessions',
      isDone: sessions.some(({ client_user_id }) => client_user_id !== null),
    },
    {
      title: 'A webhook, so that your back end is told of verdicts',
      page: 'webhooks',
      isDone: endpoints.some(({ status }) => status === 'active'),
    },
  ] as const
  isOver.current = steps.every(({ isDone }) => isDone)
  if (isOver.current) return null
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
