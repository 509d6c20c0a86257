import { useEffect, useRef } from 'preact/hooks'
import type { Erasure } from '../../../erasure/schemas.ts'
import { downloadJson } from '../shared/download.ts'
import { formatDateTime, formatNumber, inWords } from '../shared/format.ts'
import { FactList, Panel } from '../shared/panel.tsx'

/** The receipt of an erasure. It is shown only once. */
export function Receipt({ erasure }: { erasure: Erasure }) {
  const title = useRef<HTMLHeadingElement>(null)
  useEffect(() => title.current?.focus(), [])
  const counts = Object.entries(erasure.counts).map(([kind, count]) => [
    inWords(kind),
    formatNumber(count),
  ])
  return (
    <>
      <h1 ref={title} tabIndex={-1}>
        Erased
      </h1>
      <Panel title="Receipt">
        <FactList
          facts={{
            Erasure: <code>{erasure.id}</code>,
            Visitor: <code>{erasure.visitor_id}</code>,
            'Erased at': formatDateTime(erasure.erased_at),
            ...Object.fromEntries(counts),
          }}
        />
      </Panel>
      <p>
        <button type="button" onClick={() => downloadJson(erasure, erasure.id)}>
          Save receipt
        </button>
      </p>
    </>
  )
}
