import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Erasure } from '../../../erasure/schemas.ts'
import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import { callApi } from '../shared/api.ts'
import { downloadJson } from '../shared/download.ts'
import { useFormDialog } from '../shared/form-dialog.tsx'
import { pluralize } from '../shared/format.ts'
import { Menu, MenuAction } from '../shared/menu.tsx'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { hasScope, organizationPath } from '../shared/person.ts'
import { IdLink } from '../shared/values.tsx'

interface ActionsProps {
  visitor: VisitorSummary
  /** Ids of the sessions to split off. */
  selected: string[]
  onErased: (erasure: Erasure) => void
}

interface Moved {
  data: { new_visitor_id?: string; session_ids: string[] }
}

const reason = { name: 'reason', label: 'Reason', hint: 'Kept permanently; no personal data' }

/** The permitted actions on a visitor: corrections, export and erasure. */
export function Actions({ visitor: { id, lifecycle }, selected, onErased }: ActionsProps) {
  const path = `${organizationPath()}/visitors/${id}`
  const { dialog, show } = useFormDialog()
  const [result, setResult] = useState<ComponentChildren>(null)
  const { run, failure } = useMutation()
  const save = () =>
    run(async () => downloadJson((await callApi<{ data: object }>(`${path}/export`)).data, id))
  const correct = async (kind: 'splits' | 'merges', body: object) => {
    const { data } = await callApi<Moved>(`${path}/${kind}`, { method: 'POST', body })
    const { new_visitor_id: newId, session_ids: moved } = data
    setResult(
      <>
        Moved {pluralize('session', moved.length)} to{' '}
        {newId ? <IdLink id={newId} /> : 'this visitor'}
      </>,
    )
  }
  const split = () =>
    show({
      title: `Split off ${pluralize('session', selected.length)}`,
      action: 'Split off',
      text: 'They move to a new visitor. A merge undoes this.',
      fields: [reason],
      submit: (body) => correct('splits', { ...body, session_ids: selected }),
    })
  const merge = () =>
    show({
      title: 'Merge another visitor into this one',
      action: 'Merge',
      text: 'All its sessions move to this visitor, and its id points here. A split undoes this.',
      fields: [{ name: 'visitor_id', label: 'Id of the other visitor' }, reason],
      submit: (body) => correct('merges', body),
    })
  const erase = () =>
    show({
      title: 'Erase this visitor permanently?',
      action: 'Erase permanently',
      text: `Erases ${pluralize('session', lifecycle.seen_count)} with all decisions, labels and webhook events. This cannot be undone.`,
      typed: id,
      submit: async () =>
        onErased((await callApi<{ data: Erasure }>(path, { method: 'DELETE' })).data),
    })
  const mayCorrect = hasScope('visitors:manage')
  const mayExport = hasScope('visitors:export')
  const mayErase = hasScope('visitors:erase')
  return (
    <>
      {selected.length > 0 && (
        <button type="button" class="button" onClick={split}>
          Split off {selected.length}
        </button>
      )}
      {(mayCorrect || mayExport || mayErase) && (
        <Menu label="Actions">
          {mayCorrect && <MenuAction label="Merge …" onClick={merge} />}
          {mayExport && <MenuAction label="Export as JSON" onClick={save} />}
          {mayErase && <MenuAction label="Erase …" class="danger" onClick={erase} />}
        </Menu>
      )}
      {dialog}
      <MutationFailure failure={failure} />
      {result && (
        <p class="note" role="status">
          {result}
        </p>
      )}
    </>
  )
}
