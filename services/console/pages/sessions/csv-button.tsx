import { useState } from 'preact/hooks'
import type { SessionList, SessionSummary } from '../../../readback/schemas/sessions.ts'
import { callApi } from '../shared/api.ts'
import { download } from '../shared/download.ts'
import { formatNumber, pluralize } from '../shared/format.ts'
import { useMutation } from '../shared/mutation.tsx'
import { maxCsvRows, sessionsCsv } from './csv.ts'

/** A button that saves the path's sessions as CSV. A note and the file name tell if the export is truncated. */
export function CsvButton({ path }: { path: string }) {
  const [message, setMessage] = useState('')
  const { run, isRunning, failure } = useMutation()
  const save = () =>
    run(async () => {
      setMessage('Loading …')
      const { rows, isTruncated } = await readAll(path)
      const name = `sessions${isTruncated ? `-first-${maxCsvRows}` : ''}.csv`
      download(sessionsCsv(rows), { name, type: 'text/csv' })
      setMessage(isTruncated ? truncatedNote : `Saved ${pluralize('row', rows.length)}`)
    })
  return (
    <>
      <button type="button" disabled={isRunning} onClick={save}>
        Export CSV
      </button>
      <span class="hint" role="status">
        {failure ?? message}
      </span>
    </>
  )
}

const truncatedNote = `Saved only the first ${formatNumber(maxCsvRows)} rows. Narrow the time range, or use "tidegate export sessions".`

async function readAll(path: string) {
  const rows: SessionSummary[] = []
  let cursor: string | undefined
  do {
    const next = cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''
    const { data, pagination } = await callApi<SessionList>(`${path}&limit=200${next}`)
    rows.push(...data)
    cursor = pagination.next_cursor
  } while (cursor && rows.length < maxCsvRows)
  return {
    rows: rows.slice(0, maxCsvRows),
    isTruncated: cursor !== undefined || rows.length > maxCsvRows,
  }
}
