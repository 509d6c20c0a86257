import { callApi, useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { DataTable } from '../shared/data-table.tsx'
import { useFormDialog } from '../shared/form-dialog.tsx'
import { formatNumber } from '../shared/format.ts'
import { hasScope } from '../shared/person.ts'
import { RelativeTime } from '../shared/values.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { type Alert, alertForm, alertKindTitles, alertsPath } from './alert-form.ts'
import { useViews, viewHref } from './views.tsx'

const pollMs = 60_000

function amount({ kind }: Alert, value: number | null): string {
  if (value === null) return '–'
  return { count: formatNumber(value), share: `${value} %`, multiple: `${value}×` }[kind]
}

/** The tab with all alerts. */
export function Alerts() {
  const response = useResponse<{ data: Alert[] }>(alertsPath(), { pollMs })
  const views = new Map(useViews().map((view) => [view.id, view]))
  const { dialog, show } = useFormDialog()
  const remove = ({ id }: Alert) =>
    show({
      title: 'Delete alert?',
      action: 'Delete',
      submit: () => callApi(`${alertsPath()}/${id}`, { method: 'DELETE' }),
    })
  return (
    <>
      {dialog}
      <Loaded response={response}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="note">No alerts. Create one in the menu of a saved view.</p>
          ) : (
            <DataTable
              label="Alerts"
              rows={data.flatMap((alert) => {
                const view = views.get(alert.view_id)
                return view ? [{ alert, view }] : []
              })}
              keyOf={({ alert }) => alert.id}
              columns={[
                { title: 'View', cell: ({ view }) => <a href={viewHref(view)}>{view.name}</a> },
                {
                  title: 'Opens at',
                  cell: ({ alert }) =>
                    `${alertKindTitles[alert.kind]} ≥ ${amount(alert, alert.threshold)} in ${alert.window_minutes} min`,
                },
                {
                  title: 'Status',
                  cell: ({ alert: { status, opened_at } }) =>
                    status === 'open' && opened_at ? (
                      <>
                        <span class="badge bad">Open</span> <RelativeTime at={opened_at} />
                      </>
                    ) : (
                      'Quiet'
                    ),
                },
                {
                  title: 'Last value',
                  class: 'number',
                  cell: ({ alert }) => amount(alert, alert.last_value),
                },
                hasScope('views:manage') && {
                  title: 'Actions',
                  cell: ({ alert, view }) => (
                    <>
                      <button type="button" onClick={() => show(alertForm(view, alert))}>
                        Edit
                      </button>{' '}
                      <button type="button" class="danger" onClick={() => remove(alert)}>
                        Delete
                      </button>
                    </>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
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
