import { useRef } from 'preact/hooks'
import { send } from '../shared/api.ts'
import { ChangeFailure, useChange } from '../shared/change.tsx'
import { inWords } from '../shared/format.ts'
import { usePageKeys } from '../shared/keys.ts'
import { hasScope } from '../shared/person.ts'

const labels = ['human', 'bot', 'fraud', 'legitimate']

/** Buttons that label the session. A new label replaces the old one. */
export function LabelButtons({
  sessionId,
  current,
}: {
  sessionId: string
  current: string | null
}) {
  const { run, failure } = useChange()
  const marks = useRef<HTMLFieldSetElement>(null)
  usePageKeys(({ key }) => key === 'm' && marks.current?.querySelector('button')?.focus(), [])
  if (!hasScope('sessions:mark')) return null
  const mark = (label: string) =>
    run(async () => {
      await send('/v1/marks', { method: 'POST', body: { session_ids: [sessionId], label } })
    })
  return (
    <fieldset class="marks" ref={marks}>
      <legend>Label as</legend>
      {labels.map((label) => (
        <button
          key={label}
          type="button"
          aria-pressed={current === label}
          onClick={() => mark(label)}
        >
          {inWords(label)}
        </button>
      ))}
      <ChangeFailure failure={failure} />
    </fieldset>
  )
}
