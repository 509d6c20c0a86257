import type { Erasure } from '../../../erasure/schemas.ts'
import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import { callApi } from '../shared/api.ts'
import { downloadJson } from '../shared/download.ts'
import { type FormBody, showForm } from '../shared/form-dialog.tsx'
import { pluralize } from '../shared/format.ts'
import { ActionMenu } from '../shared/menu.tsx'
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
  const exportJson = async () =>
    downloadJson((await callApi<{ data: object }>(`${path}/export`)).data, id)
  const correct = async (kind: 'splits' | 'merges', body: object) => {
    const { data } = await callApi<Moved>(`${path}/${kind}`, { method: 'POST', body })
    const { new_visitor_id: newId, session_ids: moved } = data
    return (
      <p role="status">
        Moved {pluralize('session', moved.length)} to{' '}
        {newId ? <IdLink id={newId} /> : 'this visitor'}
      </p>
    )
  }
  const split = () =>
    showForm({
      title: `Split off ${pluralize('session', selected.length)}`,
      action: 'Split off',
      text: 'They move to a new visitor. A merge undoes this.',
      fields: [reason],
      submit: (body) => correct('splits', { ...body, session_ids: selected }),
    })
  const merge = {
    title: 'Merge another visitor into this one',
    action: 'Merge',
    text: 'All its sessions move to this visitor, and its id points here. A split undoes this.',
    fields: [{ name: 'visitor_id', label: 'Id of the other visitor' }, reason],
    submit: (body: FormBody) => correct('merges', body),
  }
  const erase = {
    title: 'Erase this visitor permanently?',
    action: 'Erase permanently',
    text: `Erases ${pluralize('session', lifecycle.seen_count)} with all decisions, labels and webhook events. This cannot be undone.`,
    typed: id,
    submit: async () =>
      onErased((await callApi<{ data: Erasure }>(path, { method: 'DELETE' })).data),
  }
  return (
    <>
      {selected.length > 0 && (
        <button type="button" class="button" onClick={split}>
          Split off {selected.length}
        </button>
      )}
      <ActionMenu
        label="Actions"
        items={[
          hasScope('visitors:manage') && { label: 'Merge …', action: merge },
          hasScope('visitors:export') && { label: 'Export as JSON', action: exportJson },
          hasScope('visitors:erase') && { label: 'Erase …', class: 'danger', action: erase },
        ]}
      />
    </>
  )
}
