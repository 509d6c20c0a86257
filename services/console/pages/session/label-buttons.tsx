import { useRef } from 'preact/hooks'
import { callApi } from '../shared/api.ts'
import { inWords } from '../shared/format.ts'
import { usePageKeys } from '../shared/keys.ts'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { hasScope } from '../shared/person.ts'

export const labelChoices = ['human', 'bot', 'fraud', 'legitimate']

/** Buttons that label the session. A new label replaces the old one. */
export function LabelButtons({
  sessionId,
  current,
}: {
  sessionId: string
  current: string | null
}) {
  const { run, failure } = useMutation()
  const marks = useRef<HTMLFieldSetElement>(null)
  usePageKeys(({ key }) => key === 'm' && marks.current?.querySelector('button')?.focus(), [])
  if (!hasScope('sessions:mark')) return null
  const mark = (label: string) =>
    run(async () => {
      await callApi('/v1/marks', { method: 'POST', body: { session_ids: [sessionId], label } })
    })
  return (
    <fieldset class="marks" ref={marks}>
      <legend>Label as</legend>
      <span class="segmented">
        {labelChoices.map((label) => (
          <button
            key={label}
            type="button"
            aria-pressed={current === label}
            onClick={() => mark(label)}
          >
            {inWords(label)}
          </button>
        ))}
      </span>
      <MutationFailure failure={failure} />
    </fieldset>
  )
}
