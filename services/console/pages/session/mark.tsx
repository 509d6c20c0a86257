import { useRef } from 'preact/hooks'
import { send } from '../shared/api.ts'
import { ChangeFailure, useChange } from '../shared/change.tsx'
import { inWords } from '../shared/format.ts'
import { usePageKeys } from '../shared/keys.ts'
import { may } from '../shared/person.ts'

const labels = ['human', 'bot', 'fraud', 'legitimate']

/** Says what the session really was. A newer mark takes the place of this one. */
export function Mark({ sessionId, marked }: { sessionId: string; marked: string | null }) {
  const { run, failure } = useChange()
  const marks = useRef<HTMLFieldSetElement>(null)
  usePageKeys(({ key }) => key === 'm' && marks.current?.querySelector('button')?.focus(), [])
  if (!may('sessions:mark')) return null
  const mark = (label: string) =>
    run(async () => {
      await send('/v1/marks', { method: 'POST', body: { session_ids: [sessionId], label } })
    })
  return (
    <fieldset class="marks" ref={marks}>
      <legend>This really was</legend>
      {labels.map((label) => (
        <button
          key={label}
          type="button"
          aria-pressed={marked === label}
          onClick={() => mark(label)}
        >
          {inWords(label)}
        </button>
      ))}
      <ChangeFailure failure={failure} />
    </fieldset>
  )
}
