import { useEffect, useRef, useState } from 'preact/hooks'
import type { SessionList, SessionSummary } from '../../../readback/schemas/sessions.ts'
import { callApi } from '../shared/api.ts'
import { download } from '../shared/download.ts'
import { formatNumber, pluralize } from '../shared/format.ts'
import { useMutation } from '../shared/mutation.tsx'
import { maxCsvRows, sessionsCsv } from './csv.ts'

/**
 * A button that saves the path's sessions as CSV. A note and the file name tell if the export is truncated. The rows read
 * before it failed or was canceled can be saved. Leaving the page cancels it.
 */
export function CsvButton({ path }: { path: string }) {
  const [message, setMessage] = useState('')
  const [partial, setPartial] = useState<readonly SessionSummary[]>([])
  const { run, isRunning, failure } = useMutation()
  const controller = useRef<AbortController>(null)
  useEffect(() => () => controller.current?.abort(), [])
  const save = (rows: readonly SessionSummary[], { isTruncated }: { isTruncated: boolean }) => {
    const name = `sessions${isTruncated ? `-first-${rows.length}` : ''}.csv`
    download(sessionsCsv(rows), { name, type: 'text/csv' })
  }
  const exportAll = () =>
    run(async () => {
      controller.current = new AbortController()
      const { signal } = controller.current
      const rows: SessionSummary[] = []
      setPartial([])
      setMessage('Loading …')
      try {
        const isTruncated = await readAll(path, rows, signal)
        save(rows, { isTruncated })
        setMessage(isTruncated ? truncatedNote : `Saved ${pluralize('row', rows.length)}`)
      } catch (error) {
        setPartial(rows)
        setMessage('Canceled')
        if (!signal.aborted) throw error
      }
    })
  return (
    <>
      <button type="button" disabled={isRunning} onClick={exportAll}>
        Export CSV
      </button>
      {isRunning && (
        <button type="button" onClick={() => controller.current?.abort()}>
          Cancel
        </button>
      )}
      <span class="hint" role="status">
        {failure ?? message}
      </span>
      {partial.length > 0 && (
        <button type="button" onClick={() => save(partial, { isTruncated: true })}>
          Save the first {pluralize('row', partial.length)}
        </button>
      )}
    </>
  )
}

const truncatedNote = `Saved only the first ${formatNumber(maxCsvRows)} rows. Narrow the time range, or use "tidegate export sessions".`

/** Reads the sessions into `rows`. Returns true if there are more. */
async function readAll(
  path: string,
  rows: SessionSummary[],
  signal: AbortSignal,
): Promise<boolean> {
  let cursor: string | undefined
  do {
    const next = cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''
    const page = await callApi<SessionList>(`${path}&limit=200${next}`, { signal })
    rows.push(...page.data)
    cursor = page.pagination.next_cursor
  } while (cursor && rows.length < maxCsvRows)
  return rows.splice(maxCsvRows).length > 0 || cursor !== undefined
}
