import { useState } from 'preact/hooks'
import { RequestFailure, send } from '../shared/api.ts'
import { inWords } from '../shared/format.ts'
import { may } from '../shared/person.ts'

const labels = ['human', 'bot', 'fraud', 'legitimate']

/** Says what the session really was. A newer mark takes the place of this one. */
export function Mark({
  sessionId,
  marked,
  done,
}: {
  sessionId: string
  marked: string | null
  done: () => void
}) {
  const [failure, setFailure] = useState<string | null>(null)
  if (!may('sessions:mark')) return null
  const mark = async (label: string) => {
    setFailure(null)
    try {
      await send('/v1/marks', { method: 'POST', body: { session_ids: [sessionId], label } })
      done()
    } catch (error) {
      if (error instanceof RequestFailure) setFailure(error.message)
    }
  }
  return (
    <fieldset class="marks">
      <legend>This really was</legend>
      {labels.map((label) => (
        <button key={label} type="button" aria-pressed={marked === label} onClick={() => mark(label)}>
          {inWords(label)}
        </button>
      ))}
      {failure && (
        <p class="note bad" role="alert">
          {failure}
        </p>
      )}
    </fieldset>
  )
}
