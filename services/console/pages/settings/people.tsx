import type { LoginLinkPath, OpenSession } from '../../schemas.ts'
import { serverPath } from '../shared/address.ts'
import { callApi } from '../shared/api.ts'
import { showForm } from '../shared/form-dialog.tsx'
import { ListTable, usePages } from '../shared/pages.tsx'
import { person } from '../shared/person.ts'
import { RelativeTime } from '../shared/values.tsx'

/** Open console sessions of the organization. */
export function People() {
  const invite = () =>
    showForm({
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
    showForm({
      title: `End the session of ${name}?`,
      action: 'End session',
      text: `${name} is signed out at once, and needs a new login link or a key to return.`,
      submit: () => callApi(`/people/${id}`, { method: 'DELETE' }),
    })
  return (
    <>
      <button type="button" class="button add" onClick={invite}>
        Create login link
      </button>
      <ListTable
        label="Signed in"
        list={usePages<OpenSession>('/people', { pollMs: 30_000 })}
        keyOf={({ id }) => id}
        columns={{
          Name: { class: 'clip', cell: ({ name }) => name },
          Role: ({ role }) => role ?? 'key',
          Environments: ({ environments }) => environments.join(', '),
          'Signed in': ({ created_at }) => <RelativeTime at={created_at} />,
          'Last used': ({ last_used_at }) => <RelativeTime at={last_used_at} />,
          Actions: (session) =>
            session.is_current ? (
              <span class="badge">You</span>
            ) : (
              <button
                type="button"
                class="plain danger"
                aria-label={`End session of ${session.name}`}
                onClick={() => end(session)}
              >
                End session
              </button>
            ),
        }}
      />
    </>
  )
}
