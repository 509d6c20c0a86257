import { hrefOf } from '../shared/address.ts'
import { callApi } from '../shared/api.ts'
import { useFormDialog } from '../shared/form-dialog.tsx'
import { hasScope } from '../shared/person.ts'

/** The session's user, with a dialog that attaches another or removes it. */
export function AttachUser({ sessionId, user }: { sessionId: string; user: string | null }) {
  const { dialog, show } = useFormDialog()
  const attach = () =>
    show({
      title: 'Attach a user',
      action: 'Save',
      fields: [
        {
          name: 'client_user_id',
          label: 'Your user id',
          hint: 'Empty removes the user.',
          value: user,
        },
      ],
      async submit({ client_user_id: text }) {
        const body = { client_user_id: String(text).trim() || null }
        await callApi(`/v1/sessions/${sessionId}`, { method: 'PATCH', body })
      },
    })
  const query = new URLSearchParams({ user: user ?? '' })
  return (
    <>
      {user === null ? 'none' : <a href={hrefOf({ page: 'visitors', query })}>{user}</a>}{' '}
      {hasScope('sessions:update') && (
        <button type="button" class="plain hint" onClick={attach}>
          {user === null ? 'Attach' : 'Change'}
        </button>
      )}
      {dialog}
    </>
  )
}
