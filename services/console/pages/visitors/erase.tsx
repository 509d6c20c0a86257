import { useRef, useState } from 'preact/hooks'
import type { Erasure } from '../../../erasure/schemas.ts'
import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import { callApi, useResponse } from '../shared/api.ts'
import { formatNumber } from '../shared/format.ts'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { describeErasure, type VisitorExport } from './erasure-summary.ts'

interface EraseProps {
  visitor: VisitorSummary
  /** API path of the visitor. */
  path: string
  onErased: (erasure: Erasure) => void
}

/**
 * A button with a confirmation dialog that lists what is erased. The id must be typed, because erasure is irreversible.
 */
export function Erase({ visitor, path, onErased }: EraseProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOpen, setOpen] = useState(false)
  const { run, failure } = useMutation()
  const openDialog = () => {
    setOpen(true)
    dialog.current?.showModal()
  }
  const erase = (event: SubmitEvent) => {
    event.preventDefault()
    void run(async () => {
      const { data } = await callApi<{ data: Erasure }>(path, { method: 'DELETE' })
      dialog.current?.close()
      onErased(data)
    })
  }
  return (
    <>
      <button type="button" onClick={openDialog}>
        Erase …
      </button>
      <dialog
        ref={dialog}
        class="erase"
        aria-labelledby="erase-title"
        onClose={() => setOpen(false)}
      >
        <form onSubmit={erase}>
          <h2 id="erase-title">Erase this visitor permanently?</h2>
          {isOpen && <ErasureSummary visitor={visitor} path={path} />}
          <p>This cannot be undone.</p>
          <label>
            Type the visitor id: <span class="mono">{visitor.id}</span>
            <input class="mono" name="id" required pattern={visitor.id} autocomplete="off" />
          </label>
          <div class="personal">
            <button type="submit">Erase permanently</button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
          </div>
          <MutationFailure failure={failure} />
        </form>
      </dialog>
    </>
  )
}

/** Above this many sessions, only their number is shown. */
const maxCounted = 1000

function ErasureSummary({ visitor, path }: Pick<EraseProps, 'visitor' | 'path'>) {
  const { seen_count: count } = visitor.lifecycle
  if (count <= maxCounted) return <CountedErasureSummary path={path} />
  return <p>Erases {formatNumber(count)} sessions and all their data.</p>
}

function CountedErasureSummary({ path }: Pick<EraseProps, 'path'>) {
  const response = useResponse<{ data: VisitorExport }>(`${path}/export`)
  return <Loaded response={response}>{({ data }) => <p>Erases {describeErasure(data)}.</p>}</Loaded>
}
