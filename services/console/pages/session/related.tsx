import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { formatNumber, inWords, shortId } from '../shared/format.ts'
import { Panel } from '../shared/panel.tsx'
import { isoTime, now } from '../shared/span.ts'
import { TableHead } from '../shared/table-head.tsx'
import { Loaded } from '../shell/loaded.tsx'

type Related = NonNullable<SessionDetail['related']>[number]

/** Counts of sessions that share a value with this one, each with a link to them. */
export function RelatedSection({ session: { id, repeats, network } }: { session: SessionDetail }) {
  const path = `/v1/sessions/${id}?include=related`
  const response = useResponse<{ data: SessionDetail }>(path, { pollMs: 60_000 })
  const sameDevice = repeats?.snapshot_sessions.day ?? 0
  return (
    <Panel title="Related sessions">
      <Loaded response={response}>
        {({ data: { related = [] } }) => (
          <table>
            <TableHead columns={['Same', 'Period', 'Sessions']} numericColumns={['Sessions']} />
            <tbody>
              {related.map((row) => (
                <RelatedRow key={row.field} {...row} holder={network.routing.organization} />
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
      {sameDevice > 1 && (
        <p class="hint">{countText(sameDevice, 100)} with the same device data the day before</p>
      )}
    </Panel>
  )
}

// The server stops counting at `max`.
const countText = (count: number, max: number) => formatNumber(count) + (count >= max ? '+' : '')

const titles: Record<Related['field'], string> = {
  visitor_id: 'Visitor',
  client_user_id: 'User',
  ip: 'IP address',
  asn: 'Network',
  page_path: 'Path',
  attribution: 'Tool',
  agent_provider: 'Agent operator',
}

function RelatedRow({ holder, ...row }: Related & { holder: string | null }) {
  const { field, value, sessions, since } = row
  const query = new URLSearchParams({ [field]: value, since, until: isoTime(now.value) })
  // The server counts 30 days or one, or less of a busy day.
  const hours = Math.round((now.value - Date.parse(since)) / 3_600_000)
  return (
    <tr>
      <td title={value}>
        <span class="hint">{titles[field]}</span> {relatedText(row, holder)}
      </td>
      <td class="hint">{hours > 24 ? '30 days' : `${hours} h`}</td>
      <td class="number">
        <a href={hrefOf({ page: 'sessions', query })}>{countText(sessions, 1000)}</a>
      </td>
    </tr>
  )
}

function relatedText({ field, value }: Related, holder: string | null): string {
  if (field === 'visitor_id') return shortId(value)
  if (field === 'asn') return holder ?? `AS${value}`
  return field === 'attribution' ? inWords(value.slice(value.indexOf(':') + 1)) : value
}
