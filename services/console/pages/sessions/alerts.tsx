import { callApi, useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { formatNumber } from '../shared/format.ts'
import { ActionMenu } from '../shared/menu.tsx'
import { ListTable, usePages } from '../shared/pages.tsx'
import { hasScope } from '../shared/person.ts'
import { RelativeTime } from '../shared/values.tsx'
import { type Alert, alertForm, alertKindTitles, alertsPath } from './alert-form.ts'
import { useViews, viewHref } from './views.tsx'

const pollMs = 60_000

function amount({ kind }: Alert, value: number | null): string {
  if (value === null) return '–'
  const rounded = Math.round(value * 10) / 10
  return { count: formatNumber(value), share: `${rounded} %`, multiple: `${rounded}×` }[kind]
}

/** The tab with all alerts. */
export function Alerts() {
  const list = usePages<Alert>(alertsPath(), { pollMs })
  const views = new Map(useViews().map((view) => [view.id, view]))
  const rows = list.rows.flatMap((alert) => {
    const view = views.get(alert.view_id)
    return view ? [{ alert, view }] : []
  })
  const removal = ({ alert, view }: (typeof rows)[number]) => ({
    title: `Delete the alert on ${view.name}?`,
    action: 'Delete',
    submit: () => callApi(`${alertsPath()}/${alert.id}`, { method: 'DELETE' }),
  })
  return (
    <>
      <ListTable
        label="Alerts"
        list={{ ...list, rows }}
        empty={<p class="note">No alerts. Create one in the menu of a saved view.</p>}
        keyOf={({ alert }) => alert.id}
        columns={{
          View: {
            class: 'clip',
            cell: ({ view }) => (
              <a href={viewHref(view)} title={view.name}>
                {view.name}
              </a>
            ),
          },
          'Opens at': ({ alert }) =>
            `${alertKindTitles[alert.kind]} ≥ ${amount(alert, alert.threshold)} in ${alert.window_minutes} min`,
          Status: ({ alert: { status, opened_at } }) =>
            status === 'open' && opened_at ? (
              <>
                <span class="badge bad">Open</span> <RelativeTime at={opened_at} />
              </>
            ) : (
              'Quiet'
            ),
          'Last value': { class: 'number', cell: ({ alert }) => amount(alert, alert.last_value) },
          Actions:
            hasScope('views:manage') &&
            ((row) => (
              <ActionMenu
                class="plain"
                label="⋯"
                name={`Actions for the alert on ${row.view.name}`}
                items={[
                  { label: 'Edit', action: alertForm(row.view, row.alert) },
                  { label: 'Delete', class: 'danger', action: removal(row) },
                ]}
              />
            )),
        }}
      />
      <ApiRequest paths={[alertsPath()]} />
    </>
  )
}

/** A line that links the views whose alerts are open. */
export function OpenAlerts() {
  const { data } = useResponse<{ data: Alert[] }>(alertsPath(), { pollMs }).data ?? { data: [] }
  const openIds = new Set(data.filter(({ status }) => status === 'open').map((a) => a.view_id))
  const views = useViews().filter(({ id }) => openIds.has(id))
  if (views.length === 0) return null
  return (
    <div class="note bad row" role="status">
      <strong>Open alerts</strong>
      {views.map((view) => (
        <a key={view.id} href={viewHref(view)}>
          {view.name}
        </a>
      ))}
    </div>
  )
}
