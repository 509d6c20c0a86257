import { hrefWith } from '../shared/address.ts'
import { inWords, short } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import { Time } from '../shared/time.tsx'
import type { ListedSessionRow } from '../shared/types.ts'
import { VerdictBadge } from '../shared/verdict.tsx'

/** A table of sessions. Each opens beside the list. */
export function Rows({ rows, open }: { rows: ListedSessionRow[]; open: string | null }) {
  return (
    <div class="scroll">
      <table class="rows">
        <Head
          columns={['Verdict', 'When', 'Session', 'Page', 'From', 'Browser', 'Visitor', 'Signals']}
          numbers={['Signals']}
        />
        <tbody>
          {rows.map((row) => (
            <Row key={row.id} row={row} isOpen={row.id === open} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Row({ row, isOpen }: { row: ListedSessionRow; isOpen: boolean }) {
  const { id, latest_decision: decision, facts, visitor_fingerprint: visitor, mark } = row
  return (
    <tr aria-selected={isOpen}>
      <td>
        <VerdictBadge verdict={decision.verdict} score={decision.risk_score} />
        {mark && <span class="tag">{inWords(mark.label)}</span>}
      </td>
      <td>
        <Time at={decision.evaluated_at} />
      </td>
      <td>
        <a class="mono" href={hrefWith({ open: id })} title={id}>
          {short(id)}
        </a>
      </td>
      <td class="long">
        <Only field="page_host" value={facts?.page_host} />
        {facts?.page_path}
      </td>
      <td>
        <Only field="country" value={facts?.country} />{' '}
        <Only
          field="asn"
          value={facts?.asn?.toString()}
          text={`AS${facts?.asn}`}
          title={facts?.network_holder}
        />
      </td>
      <td>
        <Only field="browser" value={facts?.browser} /> {facts?.browser_version?.split('.')[0]}
      </td>
      <td>
        {visitor && (
          <a class="mono" href={hrefWith({ visitor_id: visitor.id })} title={visitor.id}>
            {short(visitor.id)}
          </a>
        )}
      </td>
      <td class="number" title={facts?.signals.map(inWords).join(', ')}>
        {facts?.signals.length}
      </td>
    </tr>
  )
}

interface OnlyProps {
  field: string
  value: string | null | undefined
  text?: string
  title?: string | null | undefined
}

/** A value that leads to the sessions which have it, too. */
function Only({ field, value, text, title }: OnlyProps) {
  if (!value) return null
  return (
    <a class="only" href={hrefWith({ [field]: value })} title={title ?? undefined}>
      {text ?? value}
    </a>
  )
}
