import type { SessionDetailRow, VisitorLifecycle } from '../../projections/sessions/rows.ts'
import { iso } from '../../projections/sessions/shown.ts'

/**
 * The response body of a session's detail. Put together from text because that is several times cheaper than to
 * parse and write 5 KB of JSON of which nearly nothing changes.
 *
 * In JSON text a quotation mark inside a string is escaped, so what is looked for here can only be a member; and it
 * is the right one, because nothing before it has a member of that name.
 */
export function sessionDetailJson(row: SessionDetailRow, { requestId }: { requestId: string }): string {
  const { shown, client_user_id, lifecycle, previous_decisions } = row
  const fills: Fill[] = []
  if (client_user_id !== null) fills.push(['"client_user_id":', 'null', JSON.stringify(client_user_id)])
  if (lifecycle) fills.push(['"lifecycle":', 'null', JSON.stringify(shownLifecycle(lifecycle))])
  if (previous_decisions !== '') fills.push(['"previous_decisions":', '[]', `[${previous_decisions}]`])
  return `{"data":${filled(shown, fills)},"meta":{"request_id":"${requestId}"}}`
}

type Fill = [member: string, empty: string, value: string]

/** Gives members, in the order they come in, a value in place of the empty one. */
function filled(text: string, fills: Fill[]): string {
  let result = ''
  let from = 0
  for (const [member, empty, value] of fills) {
    const at = text.indexOf(member + empty, from)
    if (at < 0) throw new Error(`a stored session has no ${member}${empty}`)
    result += text.slice(from, at) + member + value
    from = at + member.length + empty.length
  }
  return result + text.slice(from)
}

function shownLifecycle({ first_seen_at, last_seen_at, seen_count }: VisitorLifecycle) {
  return { first_seen_at: iso(first_seen_at), last_seen_at: iso(last_seen_at), seen_count }
}
