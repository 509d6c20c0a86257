import { send } from '../shared/api.ts'
import { ChangeFailure, useChange } from '../shared/change.tsx'
import { may } from '../shared/person.ts'

/** Says whose session it is. An empty field takes the user away. */
export function AttachUser({ sessionId, user }: { sessionId: string; user: string | null }) {
  const { run, failure } = useChange()
  if (!may('sessions:update')) return null
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
        Your id of the user <input name="user" defaultValue={user ?? ''} autocomplete="off" />
      </label>
      <button type="submit">Attach</button>
      <ChangeFailure failure={failure} />
    </form>
  )
}
