import { useState } from 'preact/hooks'
import { hrefWith, navigate } from '../shared/address.ts'
import { callApi, useResponse } from '../shared/api.ts'
import { Dialog } from '../shared/dialog.tsx'
import { FormField } from '../shared/form-field.tsx'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { hasScope, organizationPath } from '../shared/person.ts'

interface View {
  id: string
  name: string
  query: string
}

const viewsPath = () => `${organizationPath()}/views`

/** Returns the part of a URL's query that views save, in a form that can be compared. */
function savedQuery(query: string | URLSearchParams): string {
  const saved = new URLSearchParams(query)
  for (const name of ['open', 'view']) saved.delete(name)
  saved.sort()
  return saved.toString()
}

/** The page's title: the name of the saved view that the URL names, or "Sessions". */
export function ViewTitle({ query }: { query: URLSearchParams }) {
  const { data: views } = useResponse<{ data: View[] }>(viewsPath())
  const [isOpen, setOpen] = useState(false)
  const view = views?.data.find(({ id }) => id === query.get('view'))
  const current = savedQuery(query)
  return (
    <div class="view-title">
      <h1>{view?.name ?? 'Sessions'}</h1>
      {view && savedQuery(view.query) !== current && <span class="badge warn">Edited</span>}
      {hasScope('views:manage') && (
        <button type="button" onClick={() => setOpen(true)}>
          {view ? 'Edit view' : 'Save view'}
        </button>
      )}
      {isOpen && <ViewDialog {...{ view, current }} onClose={() => setOpen(false)} />}
    </div>
  )
}

interface ViewDialogProps {
  /** undefined to save a new view. */
  view: View | undefined
  /** Query to save. */
  current: string
  onClose: () => void
}

function ViewDialog({ view, current, onClose }: ViewDialogProps) {
  const { run, isRunning, errors, failure } = useMutation(['name'])
  const [name, setName] = useState(view?.name ?? '')
  const send = (method: 'POST' | 'PATCH' | 'DELETE') =>
    run(async () => {
      const path = method === 'POST' || !view ? viewsPath() : `${viewsPath()}/${view.id}`
      const body = method === 'DELETE' ? {} : { body: { name, query: current } }
      const { data } = await callApi<{ data: View }>(path, { method, ...body })
      navigate(hrefWith({ view: method === 'DELETE' ? null : data.id }), { replace: true })
      onClose()
    })
  return (
    <Dialog title={view ? 'Edit view' : 'Save view'} onClose={onClose}>
      <form
        class="dialog-form"
        onSubmit={(event) => {
          event.preventDefault()
          send(view ? 'PATCH' : 'POST')
        }}
      >
        <FormField
          label="Name"
          hint="The filters, period, grouping, order and columns are saved with it."
          error={errors.name}
        >
          <input
            required
            value={name}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </FormField>
        <MutationFailure failure={failure} />
        <div class="dialog-actions">
          {view && (
            <>
              <button type="button" class="danger" onClick={() => send('DELETE')}>
                Delete
              </button>
              <button type="button" onClick={() => send('POST')}>
                Save as new
              </button>
            </>
          )}
          <button type="submit" class="button" disabled={isRunning}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  )
}
