import { useState } from 'preact/hooks'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { labelChoices, labelSessions, newMarks } from '../session/label-buttons.tsx'
import { callApi } from '../shared/api.ts'
import { pluralize } from '../shared/format.ts'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { hasScope } from '../shared/person.ts'
import type { Selection } from './selection.ts'

interface BulkBarProps {
  rows: readonly SessionSummary[]
  selection: Selection
}

interface Done {
  markId: string
  /** Such as `2 sessions labeled bot`. */
  text: string
  marksBefore: typeof newMarks.value
}

/** Labels the selected sessions, and undoes the last label. */
export function BulkBar({ rows, selection }: BulkBarProps) {
  const { run, isRunning, failure } = useMutation()
  const [done, setDone] = useState<Done>()
  const selected = rows.filter(({ id }) => selection.ids.value.includes(id))
  if (selected.length === 0 && !done) return null
  const label = (label: string) =>
    run(async () => {
      // Undoing must not remove marks that were there before.
      const changed = selected.filter(({ mark }) => mark?.label !== label)
      const marksBefore = newMarks.value
      if (changed.length > 0) {
        const ids = changed.map(({ id }) => id)
        const text = `${pluralize('session', ids.length)} labeled ${label}`
        setDone({ markId: await labelSessions(ids, label), text, marksBefore })
      }
      selection.set([])
    })
  const undo = ({ markId, marksBefore }: Done) =>
    run(async () => {
      await callApi(`/v1/marks/${markId}`, { method: 'DELETE' })
      newMarks.value = marksBefore
      setDone(undefined)
    })
  return (
    <div class="row bulk-bar panel">
      {selected.length > 0 ? (
        <>
          <b role="status">{selected.length} selected</b>
          {hasScope('sessions:mark') && <span>Label as</span>}
          {hasScope('sessions:mark') &&
            labelChoices.map((name) => (
              <button key={name} type="button" disabled={isRunning} onClick={() => label(name)}>
                {name}
              </button>
            ))}
          <button type="button" class="plain" onClick={() => selection.set([])}>
            Clear
          </button>
        </>
      ) : (
        done && (
          <>
            <b role="status">{done.text}</b>
            <button type="button" disabled={isRunning} onClick={() => undo(done)}>
              Undo
            </button>
            <button type="button" class="plain" onClick={() => setDone(undefined)}>
              Dismiss
            </button>
          </>
        )
      )}
      <MutationFailure failure={failure} />
    </div>
  )
}
