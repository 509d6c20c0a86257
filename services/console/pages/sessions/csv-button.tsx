import { useState } from 'preact/hooks'
import type { SessionList, SessionSummary } from '../../../readback/schemas/sessions.ts'
import { RequestFailure, send } from '../shared/api.ts'
import { download } from '../shared/download.ts'
import { formatNumber } from '../shared/format.ts'
import { maxCsvRows, sessionsCsv } from './csv.ts'

/** Saves the sessions that the path lists as a file. What was left out is said here and by the file's name. */
export function CsvButton({ path }: { path: string }) {
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  const save = async () => {
    setBusy(true)
    try {
      const { rows, isCut } = await readAll(path, (count) =>
        setSaid(`${formatNumber(count)} read …`),
      )
      const name = `sessions${isCut ? `-first-${maxCsvRows}` : ''}.csv`
      download(sessionsCsv(rows), { name, type: 'text/csv' })
      setSaid(isCut ? cutNote : `${formatNumber(rows.length)} saved.`)
    } catch (failure) {
      if (!(failure instanceof RequestFailure)) throw failure
      setSaid(failure.message)
    }
    setBusy(false)
  }
  return (
    <>
      <button type="button" disabled={isBusy} onClick={save}>
        CSV
      </button>
      <span class="hint" role="status">
        {said}
      </span>
    </>
  )
}

const cutNote = `Cut: the newest ${formatNumber(maxCsvRows)} were saved, and there are more. Narrow the time, or use "tidegate export sessions".`

async function readAll(path: string, progress: (count: number) => void) {
  const rows: SessionSummary[] = []
  let cursor: string | undefined
  do {
    const next = cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''
    const { data, pagination } = await send<SessionList>(`${path}&limit=200${next}`)
    rows.push(...data)
    cursor = pagination.next_cursor
    progress(rows.length)
  } while (cursor && rows.length < maxCsvRows)
  return {
    rows: rows.slice(0, maxCsvRows),
    isCut: cursor !== undefined || rows.length > maxCsvRows,
  }
}
