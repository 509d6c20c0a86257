import { subscribableTypes } from '../../../../infra/wire/webhooks/events.ts'
import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import { hrefWith, navigate } from '../shared/address.ts'
import { callApi } from '../shared/api.ts'
import { type FormBody, showForm } from '../shared/form-dialog.tsx'
import { ActionMenu } from '../shared/menu.tsx'
import { resendForm } from './resend.tsx'

/** Sends a request whose response has the signing secret. */
const issueSecret = (path: string, body?: object) =>
  callApi<{ data: WebhookEndpoint }>(path, { method: 'POST', ...(body && { body }) }).then(
    ({ data }) => data.signing_secret,
  )

const fieldsOf = (endpoint?: WebhookEndpoint) => [
  { name: 'name', label: 'Name', value: endpoint?.name },
  { name: 'url', label: 'URL', value: endpoint?.url, hint: 'https://example.com/webhooks' },
  {
    name: 'event_types',
    label: 'Events',
    choices: subscribableTypes,
    value: endpoint?.event_types ?? ['session.result.persisted'],
  },
  {
    name: 'filter.verdicts',
    label: 'Only sessions with these verdicts',
    choices: ['human', 'inconclusive', 'bot'],
    value: endpoint?.filter?.verdicts,
  },
  {
    name: 'filter.min_risk_score',
    label: 'Only sessions with at least this risk score',
    type: 'number' as const,
    hint: '0 to 100',
    value: endpoint?.filter?.min_risk_score?.toString(),
  },
]

function endpointBody(body: FormBody) {
  const { 'filter.verdicts': verdicts, 'filter.min_risk_score': score, ...settings } = body
  const filter = {
    ...(Array.isArray(verdicts) && verdicts.length > 0 && { verdicts }),
    ...(score !== null && { min_risk_score: score }),
  }
  return { ...settings, filter: Object.keys(filter).length > 0 ? filter : null }
}

/** Opens a form that adds an endpoint to the list at the API path. */
export const addEndpoint = (listPath: string): void =>
  showForm({
    title: 'Add endpoint',
    action: 'Add',
    fields: fieldsOf(),
    submit: (body) => issueSecret(listPath, endpointBody(body)),
  })

interface EndpointActionsProps {
  endpoint: WebhookEndpoint
  listPath: string
}

export function EndpointActions({ endpoint, listPath }: EndpointActionsProps) {
  const { id, name, status } = endpoint
  const path = `${listPath}/${id}`
  const isActive = status === 'active'
  const patch = (body: object) => callApi(path, { method: 'PATCH', body })
  const sendTest = async () => {
    const request = { method: 'POST' } as const
    const { data } = await callApi<{ data: { event_id: string } }>(`${path}/test`, request)
    navigate(hrefWith({ open: data.event_id }))
  }
  const edit = {
    title: `Edit ${name}`,
    action: 'Save',
    fields: fieldsOf(endpoint),
    submit: (body: FormBody) => patch(endpointBody(body)),
  }
  const rotate = {
    title: `Rotate the secret of ${name}?`,
    action: 'Rotate secret',
    text: 'Deliveries are signed with both secrets for 24 hours, then only with the new one.',
    submit: () => issueSecret(`${path}/rotations`),
  }
  const disable = {
    title: `Disable ${name}?`,
    action: 'Disable',
    text: 'It receives no events until you enable it. Pending deliveries are skipped.',
    submit: () => patch({ status: 'disabled' }),
  }
  return (
    <ActionMenu
      class="plain"
      label="⋯"
      name={`Actions for ${name}`}
      items={[
        isActive && { label: 'Send test event', action: sendTest },
        isActive && { label: 'Resend …', action: resendForm({ name, path }) },
        { label: 'Edit', action: edit },
        { label: 'Rotate secret', action: rotate },
        isActive && { label: 'Disable', class: 'danger', action: disable },
        !isActive && { label: 'Enable', action: () => patch({ status: 'active' }) },
      ]}
    />
  )
}
