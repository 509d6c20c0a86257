import { callApi } from '../shared/api.ts'
import type { FormDialogProps } from '../shared/form-dialog.tsx'
import { organizationPath } from '../shared/person.ts'

export const alertKindTitles = {
  count: 'Matching sessions',
  share: 'Percent of all sessions',
  multiple: 'Multiple of previous days',
} as const

const titles = Object.values(alertKindTitles)

export interface Alert {
  id: string
  view_id: string
  kind: keyof typeof alertKindTitles
  threshold: number
  window_minutes: number
  status: 'quiet' | 'open'
  opened_at: string | null
  last_value: number | null
  last_checked_at: string | null
}

export const alertsPath = () => `${organizationPath()}/alerts`

/** Returns the form that creates an alert on the view, or changes one. */
export function alertForm(view: { id: string; name: string }, alert?: Alert): FormDialogProps {
  const { kind = 'count', threshold = '', window_minutes = 60 } = alert ?? {}
  return {
    title: `Alert on ${view.name}`,
    action: alert ? 'Save' : 'Create',
    text: 'The view is checked every minute. Webhook endpoints get alert.opened and alert.closed.',
    fields: [
      { name: 'kind', label: 'Compare', value: alertKindTitles[kind], options: titles },
      { name: 'threshold', label: 'Open at', type: 'number', value: `${threshold}` },
      {
        name: 'window_minutes',
        label: 'Minutes to count',
        hint: '5 to 1440',
        type: 'number',
        value: `${window_minutes}`,
      },
    ],
    submit: ({ kind: title, ...body }) =>
      callApi(alert ? `${alertsPath()}/${alert.id}` : alertsPath(), {
        method: alert ? 'PATCH' : 'POST',
        body: {
          ...body,
          kind: Object.entries(alertKindTitles).find((entry) => entry[1] === title)?.[0],
          ...(!alert && { view_id: view.id }),
        },
      }),
  }
}
