import type { SessionDetailRow, VisitorLifecycle } from '../../projections/sessions/rows.ts'
import { iso } from '../../projections/sessions/shown.ts'

// In JSON text a quotation mark inside a string is escaped, so these can only be members; the first ones are those
// of the detail itself, because nothing before them has members of these names.
const emptyLifecycle = '"lifecycle":null'
const noPreviousDecisions = '"previous_decisions":[]'

/**
 * The response body of a session's detail. Put together from text because that is several times cheaper than to
 * parse and write 5 KB of JSON of which nearly nothing changes.
 */
export function sessionDetailJson(row: SessionDetailRow, { requestId }: { requestId: string }): string {
  const identity = JSON.stringify({
    object: 'session',
    id: row.id,
    created_at: iso(row.created_at),
    client_user_id: row.client_user_id,
  })
  const [before, after] = cut(row.shown, noPreviousDecisions)
  const previous = `"previous_decisions":[${row.previous_decisions}]`
  const detail = `${withLifecycle(before, row.lifecycle)}${previous}${after}`
  return `{"data":${identity.slice(0, -1)},${detail.slice(1)},"meta":${JSON.stringify({ request_id: requestId })}}`
}

function withLifecycle(text: string, lifecycle: VisitorLifecycle | null): string {
  if (!lifecycle) return text
  const [before, after] = cut(text, emptyLifecycle)
  return `${before}"lifecycle":${JSON.stringify(shownLifecycle(lifecycle))}${after}`
}

function shownLifecycle({ first_seen_at, last_seen_at, seen_count }: VisitorLifecycle) {
  return { first_seen_at: iso(first_seen_at), last_seen_at: iso(last_seen_at), seen_count }
}

function cut(text: string, mark: string): [before: string, after: string] {
  const at = text.indexOf(mark)
  if (at < 0) throw new Error(`a stored session has no ${mark}`)
  return [text.slice(0, at), text.slice(at + mark.length)]
}
