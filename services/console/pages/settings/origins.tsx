import type { ApiKey } from '../../../organizations/schemas.ts'
import { callApi } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { DataTable } from '../shared/data-table.tsx'
import { useFormDialog } from '../shared/form-dialog.tsx'
import { hasScope } from '../shared/person.ts'
import { Loaded } from '../shell/loaded.tsx'
import { isForPages, keysPath, originsField, useKeys } from './keys.tsx'

/** Origins whose pages may send sessions, by key. */
export function Origins() {
  const { path, response, keys } = useKeys()
  const { dialog, show } = useFormDialog()
  const edit = ({ id, name, allowed_origins }: ApiKey) =>
    show({
      title: `Origins of ${name}`,
      action: 'Save',
      fields: [originsField(allowed_origins)],
      submit: (body) => callApi(`${keysPath()}/${id}`, { method: 'PATCH', body }),
    })
  return (
    <Loaded response={response}>
      {() => (
        <>
          <DataTable
            label="Origins"
            rows={keys.filter(isForPages)}
            keyOf={({ id }) => id}
            columns={[
              { title: 'Key', class: 'clip', cell: ({ name }) => name },
              { title: 'Allowed origins', cell: (key) => <OriginList {...key} /> },
              hasScope('api_keys:manage') && {
                title: 'Actions',
                cell: (key) => (
                  <button type="button" onClick={() => edit(key)}>
                    Edit origins
                  </button>
                ),
              },
            ]}
          />
          {dialog}
          <ApiRequest paths={[path]} />
        </>
      )}
    </Loaded>
  )
}

function OriginList({ allowed_origins: origins }: ApiKey) {
  if (!origins?.length) return <span class="badge warn">Any origin</span>
  return origins.map((origin) => (
    <div key={origin} class="mono">
      {origin}
    </div>
  ))
}
