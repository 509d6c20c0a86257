import type { Erasure } from '../../../erasure/schemas.ts'
import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import { hrefOf } from '../shared/address.ts'
import { send } from '../shared/api.ts'
import { ChangeFailure, useChange } from '../shared/change.tsx'
import { downloadJson } from '../shared/download.ts'
import { amount } from '../shared/format.ts'
import { Panel } from '../shared/parts.tsx'
import { may, organizationPath } from '../shared/person.ts'
import { CorrectionForm } from './correction.tsx'
import { Erase } from './erase.tsx'

/** The checkboxes of the line belong to the form with this id. */
export const splitForm = 'split'

interface ActionsProps {
  visitor: VisitorSummary
  erased: (erasure: Erasure) => void
}

/** What the person may do about a visitor. Nothing where that is nothing. */
export function Actions({ visitor, erased }: ActionsProps) {
  const path = `${organizationPath()}/visitors/${visitor.id}`
  const mayCorrect = may('visitors:manage')
  const mayExport = may('visitors:export')
  const mayErase = may('visitors:erase')
  return (
    <>
      {mayCorrect && (
        <Panel title="Correct">
          <div class="columns">
            <Split path={path} />
            <Merge path={path} />
          </div>
        </Panel>
      )}
      {(mayExport || mayErase) && (
        <Panel title="Data of this person">
          <div class="personal">
            {mayExport && <Export id={visitor.id} path={path} />}
            {mayErase && <Erase visitor={visitor} path={path} erased={erased} />}
          </div>
        </Panel>
      )}
    </>
  )
}

function Split({ path }: { path: string }) {
  const correct = async (fields: FormData) => {
    const body = { session_ids: fields.getAll('session'), reason: fields.get('reason') }
    const { data } = await send<{ data: { new_visitor_id: string; session_ids: string[] } }>(
      `${path}/splits`,
      {
        method: 'POST',
        body,
      },
    )
    const { new_visitor_id: id, session_ids } = data
    return (
      <>
        {sessions(session_ids.length)} of the visitor{' '}
        <a href={hrefOf({ page: 'visitors', id })}>{id}</a> now.
      </>
    )
  }
  return (
    <CorrectionForm
      name={splitForm}
      title="Split off the chosen sessions"
      about="Choose sessions above that are of somebody else. They get a visitor of their own; a merger takes that back."
      correct={correct}
    />
  )
}

function Merge({ path }: { path: string }) {
  const correct = async (fields: FormData) => {
    const body = { visitor_id: fields.get('visitor'), reason: fields.get('reason') }
    const { data } = await send<{ data: { session_ids: string[] } }>(`${path}/merges`, {
      method: 'POST',
      body,
    })
    return `${sessions(data.session_ids.length)} of this visitor now.`
  }
  return (
    <CorrectionForm
      name="merge"
      title="Merge another visitor into this one"
      about="All its sessions become those of this visitor, and its id leads here. A split takes that back."
      correct={correct}
    >
      <label>
        Id of the other visitor
        <input name="visitor" class="mono" required pattern="vid_[0-9a-z]{26}" autocomplete="off" />
      </label>
    </CorrectionForm>
  )
}

const sessions = (count: number) => `${amount('session', count)} ${count === 1 ? 'is' : 'are'}`

function Export({ id, path }: { id: string; path: string }) {
  const { run, failure } = useChange()
  const save = () =>
    run(async () => downloadJson((await send<{ data: object }>(`${path}/export`)).data, id))
  return (
    <>
      <button type="button" onClick={save}>
        Export as JSON
      </button>
      <ChangeFailure failure={failure} />
    </>
  )
}
