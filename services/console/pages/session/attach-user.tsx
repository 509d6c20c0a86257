import { callApi } from '../shared/api.ts'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { hasScope } from '../shared/person.ts'

/** A form that attaches a user id to the session. An empty field removes it. */
export function AttachUser({ sessionId, user }: { sessionId: string; user: string | null }) {
  const { run, failure } = useMutation()
  if (!hasScope('sessions:update')) return null
  const attach = (text: string) =>
    run(async () => {
      await callApi(`/v1/sessions/${sessionId}`, {
        method: 'PATCH',
        body: { client_user_id: text || null },
      })
    })
  return (
    <form
      class="attach-user"
      onSubmit={(event) => {
        event.preventDefault()
        void attach(String(new FormData(event.currentTarget).get('user') ?? '').trim())
      }}
    >
      <label>
        Your user id <input name="user" defaultValue={user ?? ''} autocomplete="off" />
      </label>
      <button type="submit">Attach</button>
      <MutationFailure failure={failure} />
    </form>
  )
}
