import { hrefOf } from '../shared/address.ts'
import { callApi } from '../shared/api.ts'
import { FormField } from '../shared/form-field.tsx'
import { Menu } from '../shared/menu.tsx'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { hasScope } from '../shared/person.ts'

/** The session's user, with a form that attaches another or removes it. */
export function AttachUser({ sessionId, user }: { sessionId: string; user: string | null }) {
  const { run, errors, failure } = useMutation(['client_user_id'])
  const attach = (text: string) =>
    run(async () => {
      const body = { client_user_id: text || null }
      await callApi(`/v1/sessions/${sessionId}`, { method: 'PATCH', body })
    })
  const query = new URLSearchParams({ user: user ?? '' })
  return (
    <>
      {user === null ? 'none' : <a href={hrefOf({ page: 'visitors', query })}>{user}</a>}{' '}
      {hasScope('sessions:update') && (
        // The key closes the menu after a change.
        <Menu key={user} class="plain hint" label={user === null ? 'Attach' : 'Change'}>
          <form
            onSubmit={(event) => {
              event.preventDefault()
              void attach(String(new FormData(event.currentTarget).get('user') ?? '').trim())
            }}
          >
            <FormField
              label="Your user id"
              hint="Empty removes the user."
              error={errors.client_user_id}
            >
              <input name="user" defaultValue={user ?? ''} autocomplete="off" />
            </FormField>
            <MutationFailure failure={failure} />
            <button type="submit" class="button">
              Save
            </button>
          </form>
        </Menu>
      )}
    </>
  )
}
