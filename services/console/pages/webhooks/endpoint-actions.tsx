import { subscribableTypes } from '../../../../infra/wire/webhooks/events.ts'
import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import { hrefWith, navigate } from '../shared/address.ts'
import { callApi } from '../shared/api.ts'
import { type FormBody, useFormDialog } from '../shared/form-dialog.tsx'
import { Menu, MenuAction } from '../shared/menu.tsx'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { showResend } from './resend.tsx'

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

/** `listPath`: API path of the endpoints. */
export function AddEndpoint({ listPath }: { listPath: string }) {
  const { dialog, show } = useFormDialog()
  const add = () =>
    show({
      title: 'Add endpoint',
      action: 'Add',
      fields: fieldsOf(),
      submit: (body) => issueSecret(listPath, endpointBody(body)),
    })
  return (
    <>
      <button type="button" class="button" onClick={add}>
        Add endpoint
      </button>
      {dialog}
    </>
  )
}

interface EndpointActionsProps {
  endpoint: WebhookEndpoint
  listPath: string
}

export function EndpointActions({ endpoint, listPath }: EndpointActionsProps) {
  const { dialog, show } = useFormDialog()
  const { run, failure } = useMutation()
  const { id, name, status } = endpoint
  const path = `${listPath}/${id}`
  const patch = (body: object) => callApi(path, { method: 'PATCH', body })
  const sendTest = () =>
    run(async () => {
      const request = { method: 'POST' } as const
      const { data } = await callApi<{ data: { event_id: string } }>(`${path}/test`, request)
      navigate(hrefWith({ open: data.event_id }))
    })
  const edit = () =>
    show({
      title: `Edit ${name}`,
      action: 'Save',
      fields: fieldsOf(endpoint),
      submit: (body) => patch(endpointBody(body)),
    })
  const rotate = () =>
    show({
      title: `Rotate the secret of ${name}?`,
      action: 'Rotate secret',
      text: 'Deliveries are signed with both secrets for 24 hours, then only with the new one.',
      submit: () => issueSecret(`${path}/rotations`),
    })
  const disable = () =>
    show({
      title: `Disable ${name}?`,
      action: 'Disable',
      text: 'It receives no events until you enable it. Pending deliveries are skipped.',
      submit: () => patch({ status: 'disabled' }),
    })
  const resend = () => showResend({ name, path }, show)
  const enable = () => run(async () => void (await patch({ status: 'active' })))
  return (
    <>
      <Menu class="plain" label="⋯" name={`Actions for ${name}`}>
        {status === 'active' && <MenuAction label="Send test event" onClick={sendTest} />}
        {status === 'active' && <MenuAction label="Resend …" onClick={resend} />}
        <MenuAction label="Edit" onClick={edit} />
        <MenuAction label="Rotate secret" onClick={rotate} />
        {status === 'active' ? (
          <MenuAction label="Disable" class="danger" onClick={disable} />
        ) : (
          <MenuAction label="Enable" onClick={enable} />
        )}
      </Menu>
      <MutationFailure failure={failure} />
      {dialog}
    </>
  )
}
