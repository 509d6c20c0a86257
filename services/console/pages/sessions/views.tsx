import { hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { callApi, useResponse } from '../shared/api.ts'
import { type FormDialogProps, showForm } from '../shared/form-dialog.tsx'
import { ActionMenu, Menu } from '../shared/menu.tsx'
import { hasScope, organizationPath } from '../shared/person.ts'
import { alertForm } from './alert-form.ts'

interface View {
  id: string
  name: string
  query: string
}

const viewsPath = () => `${organizationPath()}/views`

/** Returns the saved views; empty before they are loaded. */
export const useViews = (): View[] => useResponse<{ data: View[] }>(viewsPath()).data?.data ?? []

/** Returns the part of a URL's query that views save, in a form that can be compared. */
function savedQuery(query: string | URLSearchParams): string {
  const saved = new URLSearchParams(query)
  for (const name of ['open', 'view']) saved.delete(name)
  saved.sort()
  return saved.toString()
}

// The page's title comes from `view`.
export const viewHref = ({ id, query }: Pick<View, 'id' | 'query'>): string =>
  hrefOf({ page: 'sessions', query: new URLSearchParams(`${query}&view=${id}`) })

/** Links to the saved views. */
export function ViewLinks({ views, current }: { views: View[]; current: string | null }) {
  return views.map(({ id, name, query }) => (
    <a
      key={id}
      class="view"
      href={viewHref({ id, query })}
      title={name}
      aria-current={id === current ? 'true' : undefined}
    >
      {name}
    </a>
  ))
}

/** The page's title: the name of the saved view that the URL names, or "Sessions". */
export function ViewTitle({ query }: { query: URLSearchParams }) {
  const views = useViews()
  const current = query.get('view')
  const view = views.find(({ id }) => id === current)
  const isEdited = view && savedQuery(view.query) !== savedQuery(query)
  return (
    <div class="row">
      <h1>{view?.name ?? 'Sessions'}</h1>
      {isEdited && <span class="badge warn">Edited</span>}
      {hasScope('views:manage') && <ViewActions view={view} query={savedQuery(query)} />}
      {views.length > 0 && (
        <Menu class="menu views" label="Views">
          <ViewLinks views={views} current={current} />
        </Menu>
      )}
    </div>
  )
}

interface ViewActionsProps {
  /** undefined to save a new view. */
  view: View | undefined
  /** Query to save. */
  query: string
}

function ViewActions({ view, query }: ViewActionsProps) {
  const form = (title: string, saved?: View): FormDialogProps => ({
    title,
    action: 'Save',
    fields: [
      {
        name: 'name',
        label: 'Name',
        hint: 'The filters, period, grouping, order and columns are saved with it.',
        value: saved?.name,
      },
    ],
    async submit({ name }) {
      const path = saved ? `${viewsPath()}/${saved.id}` : viewsPath()
      const method = saved ? 'PATCH' : 'POST'
      const { data } = await callApi<{ data: View }>(path, { method, body: { name, query } })
      navigate(hrefWith({ view: data.id }), { replace: true })
    },
  })
  if (!view)
    return (
      <button type="button" onClick={() => showForm(form('Save view'))}>
        Save view
      </button>
    )
  const removal = {
    title: `Delete ${view.name}?`,
    action: 'Delete',
    text: 'The view disappears for everyone in this environment, with its alerts.',
    async submit() {
      await callApi(`${viewsPath()}/${view.id}`, { method: 'DELETE' })
      navigate(hrefWith({ view: null }), { replace: true })
    },
  }
  return (
    <ActionMenu
      label="Edit view"
      items={[
        { label: 'Save', action: form('Edit view', view) },
        { label: 'Save as new', action: form('Save as new view') },
        { label: 'Alert me', action: alertForm(view) },
        { label: 'Delete', class: 'danger', action: removal },
      ]}
    />
  )
}
