import { useRef, useState } from 'preact/hooks'
import type { Erasure } from '../../../erasure/schemas.ts'
import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import { send, useAnswer } from '../shared/api.ts'
import { ChangeFailure, useChange } from '../shared/change.tsx'
import { formatNumber } from '../shared/format.ts'
import { Loaded } from '../shell/states.tsx'
import { type Exported, lossInWords } from './loss.ts'

interface EraseProps {
  visitor: VisitorSummary
  /** Of the visitor, in the API. */
  path: string
  erased: (erasure: Erasure) => void
}

/** Asks, says what goes, and wants the id typed, because it cannot be undone. */
export function Erase({ visitor, path, erased }: EraseProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOpen, setOpen] = useState(false)
  const { run, failure } = useChange()
  const ask = () => {
    setOpen(true)
    dialog.current?.showModal()
  }
  const erase = (event: SubmitEvent) => {
    event.preventDefault()
    void run(async () => {
      const { data } = await send<{ data: Erasure }>(path, { method: 'DELETE' })
      dialog.current?.close()
      erased(data)
    })
  }
  return (
    <>
      <button type="button" onClick={ask}>
        Erase …
      </button>
      <dialog
        ref={dialog}
        class="erase"
        aria-labelledby="erase-title"
        onClose={() => setOpen(false)}
      >
        <form onSubmit={erase}>
          <h2 id="erase-title">Erase this visitor for good?</h2>
          {isOpen && <Loss visitor={visitor} path={path} />}
          <p>It cannot be undone.</p>
          <label>
            Type its id: <span class="mono">{visitor.id}</span>
            <input class="mono" name="id" required pattern={visitor.id} autocomplete="off" />
          </label>
          <div class="personal">
            <button type="submit">Erase for good</button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
          </div>
          <ChangeFailure failure={failure} />
        </form>
      </dialog>
    </>
  )
}

/** Of more sessions, only their number is said. */
const mostCounted = 1000

function Loss({ visitor, path }: Pick<EraseProps, 'visitor' | 'path'>) {
  const { seen_count: count } = visitor.lifecycle
  if (count <= mostCounted) return <CountedLoss path={path} />
  return <p>{formatNumber(count)} sessions go, with all that belongs to them.</p>
}

function CountedLoss({ path }: Pick<EraseProps, 'path'>) {
  const answer = useAnswer<{ data: Exported }>(`${path}/export`)
  return <Loaded answer={answer}>{({ data }) => <p>What goes: {lossInWords(data)}.</p>}</Loaded>
}
