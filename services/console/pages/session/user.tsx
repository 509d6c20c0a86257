import { useState } from 'preact/hooks'
import { RequestFailure, send } from '../shared/api.ts'
import { may } from '../shared/person.ts'

/** Says whose session it is. An empty field takes the user away. */
export function AttachUser({
  sessionId,
  user,
  done,
}: {
  sessionId: string
  user: string | null
  done: () => void
}) {
  const [failure, setFailure] = useState<string | null>(null)
  if (!may('sessions:update')) return null
  const attach = async (text: string) => {
    setFailure(null)
    try {
      await send(`/v1/sessions/${sessionId}`, { method: 'PATCH', body: { client_user_id: text || null } })
      done()
    } catch (error) {
      if (error instanceof RequestFailure) setFailure(error.message)
    }
  }
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
      {failure && (
        <p class="note bad" role="alert">
          {failure}
        </p>
      )}
    </form>
  )
}
