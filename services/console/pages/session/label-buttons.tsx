import { signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { callApi } from '../shared/api.ts'
import { inWords } from '../shared/format.ts'
import { usePageKeys } from '../shared/keys.ts'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { hasScope } from '../shared/person.ts'

export const labelChoices = ['human', 'bot', 'fraud', 'legitimate']

type Mark = NonNullable<SessionSummary['mark']>

/** Marks made on this page by session, because rows of further list pages are not refetched. */
export const newMarks = signal<ReadonlyMap<string, Mark>>(new Map())

/** Labels the sessions. Returns the mark's id. */
export async function labelSessions(ids: readonly string[], label: string): Promise<string> {
  type Created = Omit<Mark, 'marked_at'> & { created_at: string }
  const body = { session_ids: ids, label }
  const { data } = await callApi<{ data: Created }>('/v1/marks', { method: 'POST', body })
  const { created_at: marked_at, ...rest } = data
  const mark = { ...rest, marked_at }
  newMarks.value = new Map([...newMarks.value, ...ids.map((id) => [id, mark] as const)])
  return mark.id
}

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
      await labelSessions([sessionId], label)
    })
  return (
    <fieldset class="row marks" ref={marks}>
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
