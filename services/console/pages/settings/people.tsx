import type { LoginLinkPath, OpenSession } from '../../schemas.ts'
import { serverPath } from '../shared/address.ts'
import { callApi, useResponse } from '../shared/api.ts'
import { DataTable } from '../shared/data-table.tsx'
import { useFormDialog } from '../shared/form-dialog.tsx'
import { person } from '../shared/person.ts'
import { RelativeTime } from '../shared/values.tsx'
import { Loaded } from '../shell/loaded.tsx'

/** Open console sessions of the organization. */
export function People() {
  const response = useResponse<{ data: OpenSession[] }>('/people', { pollMs: 30_000 })
  const { dialog, show } = useFormDialog()
  const invite = () =>
    show({
      title: 'Login link',
      action: 'Create login link',
      text: 'The link works once, within five minutes.',
      fields: [
        { name: 'name', label: 'Name of the person' },
        { name: 'role', label: 'Role', options: ['viewer', 'analyst', 'admin'] },
        {
          name: 'environments',
          label: 'Environments',
          choices: person.value?.environments ?? [],
          value: ['live'],
        },
      ],
      submit: (body) =>
        callApi<{ data: LoginLinkPath }>('/login-links', { method: 'POST', body }).then(
          ({ data }) => window.location.origin + serverPath + data.path,
        ),
    })
  const end = ({ id, name }: OpenSession) =>
    show({
      title: `End the session of ${name}?`,
      action: 'End session',
      text: `${name} is signed out at once, and needs a new login link or a key to return.`,
      submit: () => callApi(`/people/${id}`, { method: 'DELETE' }),
    })
  return (
    <>
      <div class="title">
        <span />
        <button type="button" class="button" onClick={invite}>
          Create login link
        </button>
      </div>
      {dialog}
      <Loaded response={response}>
        {({ data }) => (
          <DataTable
            label="Signed in"
            rows={data}
            keyOf={({ id }) => id}
            columns={[
              { title: 'Name', class: 'clip', cell: ({ name }) => name },
              { title: 'Role', cell: ({ role }) => role ?? 'key' },
              { title: 'Environments', cell: ({ environments }) => environments.join(', ') },
              { title: 'Signed in', cell: ({ created_at }) => <RelativeTime at={created_at} /> },
              {
                title: 'Last used',
                cell: ({ last_used_at }) => <RelativeTime at={last_used_at} />,
              },
              {
                title: 'Actions',
                cell: (session) =>
                  session.is_current ? (
                    <span class="badge">You</span>
                  ) : (
                    <button
                      type="button"
                      aria-label={`End session of ${session.name}`}
                      onClick={() => end(session)}
                    >
                      End session
                    </button>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
    </>
  )
}
