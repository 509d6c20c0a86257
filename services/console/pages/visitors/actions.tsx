import type { Erasure } from '../../../erasure/schemas.ts'
import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import { hrefOf } from '../shared/address.ts'
import { callApi } from '../shared/api.ts'
import { downloadJson } from '../shared/download.ts'
import { pluralize } from '../shared/format.ts'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { Panel } from '../shared/panel.tsx'
import { hasScope, organizationPath } from '../shared/person.ts'
import { CorrectionForm } from './correction.tsx'
import { Erase } from './erase.tsx'

/** The timeline's checkboxes belong to this form. */
export const splitFormId = 'split'

interface ActionsProps {
  visitor: VisitorSummary
  onErased: (erasure: Erasure) => void
}

/** The permitted actions on a visitor: corrections, export and erasure. */
export function Actions({ visitor, onErased }: ActionsProps) {
  const path = `${organizationPath()}/visitors/${visitor.id}`
  const mayCorrect = hasScope('visitors:manage')
  const mayExport = hasScope('visitors:export')
  const mayErase = hasScope('visitors:erase')
  return (
    <>
      {mayCorrect && (
        <Panel title="Corrections">
          <div class="columns">
            <Split path={path} />
            <Merge path={path} />
          </div>
        </Panel>
      )}
      {(mayExport || mayErase) && (
        <Panel title="Personal data">
          <div class="personal">
            {mayExport && <Export id={visitor.id} path={path} />}
            {mayErase && <Erase visitor={visitor} path={path} onErased={onErased} />}
          </div>
        </Panel>
      )}
    </>
  )
}

function Split({ path }: { path: string }) {
  const correct = async (fields: FormData) => {
    const body = { session_ids: fields.getAll('session'), reason: fields.get('reason') }
    const { data } = await callApi<{ data: { new_visitor_id: string; session_ids: string[] } }>(
      `${path}/splits`,
      {
        method: 'POST',
        body,
      },
    )
    const { new_visitor_id: id, session_ids } = data
    return (
      <>
        Moved {pluralize('session', session_ids.length)} to the visitor{' '}
        <a href={hrefOf({ page: 'visitors', id })}>{id}</a>.
      </>
    )
  }
  return (
    <CorrectionForm
      name={splitFormId}
      title="Split off selected sessions"
      about="Select sessions of somebody else above. They move to a new visitor. A merge undoes this."
      correct={correct}
    />
  )
}

function Merge({ path }: { path: string }) {
  const correct = async (fields: FormData) => {
    const body = { visitor_id: fields.get('visitor'), reason: fields.get('reason') }
    const { data } = await callApi<{ data: { session_ids: string[] } }>(`${path}/merges`, {
      method: 'POST',
      body,
    })
    return `Moved ${pluralize('session', data.session_ids.length)} to this visitor.`
  }
  return (
    <CorrectionForm
      name="merge"
      title="Merge another visitor into this one"
      about="All its sessions move to this visitor, and its id points here. A split undoes this."
      correct={correct}
    >
      <label>
        Id of the other visitor
        <input name="visitor" class="mono" required pattern="vid_[0-9a-z]{26}" autocomplete="off" />
      </label>
    </CorrectionForm>
  )
}

function Export({ id, path }: { id: string; path: string }) {
  const { run, failure } = useMutation()
  const save = () =>
    run(async () => downloadJson((await callApi<{ data: object }>(`${path}/export`)).data, id))
  return (
    <>
      <button type="button" onClick={save}>
        Export as JSON
      </button>
      <MutationFailure failure={failure} />
    </>
  )
}
