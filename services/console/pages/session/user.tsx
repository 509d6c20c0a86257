import { send } from '../shared/api.ts'
import { ChangeFailure, useChange } from '../shared/change.tsx'
import { hasScope } from '../shared/person.ts'

/** A form that attaches a user id to the session. An empty field removes it. */
export function AttachUser({ sessionId, user }: { sessionId: string; user: string | null }) {
  const { run, failure } = useChange()
  if (!hasScope('sessions:update')) return null
  const attach = (text: string) =>
    run(async () => {
      await send(`/v1/sessions/${sessionId}`, {
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
      <ChangeFailure failure={failure} />
    </form>
  )
}
