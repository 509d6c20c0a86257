import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { filterTitles } from '../sessions/fields.ts'
import { hrefOf } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { DataTable } from '../shared/data-table.tsx'
import { formatNumber, inWords, shortId } from '../shared/format.ts'
import { Panel } from '../shared/panel.tsx'
import { isoTime, now } from '../shared/span.ts'
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
          <DataTable
            label="Related sessions"
            rows={related}
            keyOf={({ field }) => field}
            columns={{
              Same: {
                class: 'clip',
                cell: (row) => (
                  <span title={row.value}>
                    <span class="hint">{titles[row.field]}</span>{' '}
                    {relatedText(row, network.routing.organization)}
                  </span>
                ),
              },
              Period: ({ since }) => <span class="hint">{periodText(since)}</span>,
              Sessions: {
                class: 'number',
                cell: (row) => <a href={hrefOfRelated(row)}>{countText(row.sessions, 1000)}</a>,
              },
            }}
          />
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

const titles = { ...filterTitles, asn: 'Network', attribution: 'Tool' }

function hrefOfRelated({ field, value, since }: Related): string {
  const query = new URLSearchParams({ [field]: value, since, until: isoTime(now.value) })
  return hrefOf({ page: 'sessions', query })
}

// The server counts 30 days or one, or less of a busy day.
function periodText(since: string): string {
  const hours = Math.round((now.value - Date.parse(since)) / 3_600_000)
  return hours > 24 ? '30 days' : `${hours} h`
}

function relatedText({ field, value }: Related, holder: string | null): string {
  if (field === 'visitor_id') return shortId(value)
  if (field === 'asn') return holder ?? `AS${value}`
  return field === 'attribution' ? inWords(value.slice(value.indexOf(':') + 1)) : value
}
