import { useState } from 'preact/hooks'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { labelChoices, labelSessions } from '../session/label-buttons.tsx'
import { callApi } from '../shared/api.ts'
import { pluralize } from '../shared/format.ts'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { hasScope } from '../shared/person.ts'
import type { Selection } from './selection.ts'

interface BulkBarProps {
  rows: readonly SessionSummary[]
  selection: Selection
  replaceRows: (rows: readonly SessionSummary[]) => void
}

/** Labels the selected sessions, and undoes the last label. */
export function BulkBar({ rows, selection, replaceRows }: BulkBarProps) {
  const { run, isRunning, failure } = useMutation()
  const [done, setDone] = useState<{ markId: string; label: string; before: SessionSummary[] }>()
  const selected = rows.filter(({ id }) => selection.ids().includes(id))
  if (selected.length === 0 && !done) return null
  const label = (label: string) =>
    run(async () => {
      // Undoing must not remove marks that were there before.
      const before = selected.filter(({ mark }) => mark?.label !== label)
      if (before.length > 0) {
        const ids = before.map(({ id }) => id)
        setDone({ markId: await labelSessions(ids, label), label, before })
      }
      selection.set([])
    })
  const undo = ({ markId, before }: NonNullable<typeof done>) =>
    run(async () => {
      await callApi(`/v1/marks/${markId}`, { method: 'DELETE' })
      replaceRows(before)
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
            <b role="status">
              {pluralize('session', done.before.length)} labeled {done.label}
            </b>
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
