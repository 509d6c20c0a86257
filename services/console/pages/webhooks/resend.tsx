import type { WebhookResend } from '../../../webhooks/deliveries/schemas.ts'
import { callApi } from '../shared/api.ts'
import { type FormDialogProps, showForm } from '../shared/form-dialog.tsx'
import { pluralize } from '../shared/format.ts'
import { isoTime } from '../shared/span.ts'

const dayMs = 24 * 60 * 60 * 1000

/** Returns the form that sends deliveries of the endpoint at the API path again. A request resends at most 1,000. */
export function resendForm({ name, path }: { name: string; path: string }): FormDialogProps {
  const form: FormDialogProps = {
    title: `Resend to ${name}`,
    action: 'Resend',
    text: 'Each event keeps its webhook-id, so that the endpoint can skip those it has processed.',
    fields: [
      { name: 'status', label: 'Deliveries', options: ['failed', 'all'] },
      {
        name: 'since',
        label: 'From',
        type: 'datetime-local',
        value: isoTime(Date.now() - dayMs),
      },
      { name: 'until', label: 'Until', type: 'datetime-local', hint: 'Empty: now.' },
    ],
    async submit(body) {
      const until = body.until ?? isoTime(Date.now())
      let { since } = body
      let resent = 0
      do {
        const { data } = await callApi<{ data: WebhookResend }>(`${path}/resend`, {
          method: 'POST',
          body: { ...body, since, until },
        })
        resent += data.resent
        since = data.next_since
        showForm({ ...form, text: <p role="status">Queued {pluralize('delivery', resent)} …</p> })
      } while (since)
      return <p>Queued {pluralize('delivery', resent)}.</p>
    },
  }
  return form
}
