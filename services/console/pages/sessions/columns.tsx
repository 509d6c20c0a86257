import type { ComponentChildren } from 'preact'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { inWords, shortId } from '../shared/format.ts'
import { Menu } from '../shared/menu.tsx'
import { IdLink, RelativeTime, VerdictBadge } from '../shared/values.tsx'
import { type Field, valueText } from './fields.ts'

export interface SessionColumn {
  /** Name in the URL. */
  name: string
  title: string
  /** Order on the server. Other columns sort the loaded rows. */
  sort?: 'evaluated_at' | 'risk_score'
  /** Fields to filter by. The first value sorts the loaded rows, unless `sortText` is set. */
  fields?: readonly Field[]
  sortText?: (row: SessionSummary) => string
  /** Default: the first of the values. */
  cell?: (row: SessionSummary) => ComponentChildren
}

const columns: readonly SessionColumn[] = [
  {
    name: 'verdict',
    title: 'Verdict',
    sort: 'risk_score',
    fields: ['verdict', 'mark'],
    sortText: ({ latest_decision }) => `${latest_decision.risk_score}`,
    cell: ({ latest_decision, mark }) => (
      <>
        <VerdictBadge {...latest_decision} />
        {mark && <span class="badge">{inWords(mark.label)}</span>}
      </>
    ),
  },
  {
    name: 'when',
    title: 'Time',
    sort: 'evaluated_at',
    cell: ({ id, latest_decision }) => (
      <a class="open" href={hrefOf({ page: 'sessions', id })}>
        <span class="hidden">Session {shortId(id)}, </span>
        <RelativeTime at={latest_decision.evaluated_at} />
      </a>
    ),
  },
  { name: 'reason', title: 'Top reason', fields: ['signal'] },
  { name: 'page', title: 'Path', fields: ['page_path', 'page_host'] },
  { name: 'host', title: 'Host', fields: ['page_host'] },
  {
    name: 'from',
    title: 'Location and network',
    fields: ['country', 'asn'],
    cell: ({ facts }) =>
      [facts?.country, facts?.network_holder ?? (facts?.asn && `AS${facts.asn}`)]
        .filter(Boolean)
        .join(' · '),
  },
  { name: 'network', title: 'Network type', fields: ['network'] },
  {
    name: 'browser',
    title: 'Browser',
    fields: ['browser', 'os'],
    cell: ({ facts }) => `${facts?.browser ?? ''} ${facts?.browser_version?.split('.')[0] ?? ''}`,
  },
  { name: 'system', title: 'System', fields: ['os'] },
  {
    name: 'agent',
    title: 'Agent',
    fields: ['agent_provider', 'agent_status'],
    cell: ({ facts }) => facts?.agent_provider && `${facts.agent_provider} ${facts.agent_status}`,
  },
  {
    name: 'visitor',
    title: 'Visitor',
    fields: ['visitor_id'],
    cell: ({ visitor_fingerprint: visitor }) => visitor && <IdLink id={visitor.id} />,
  },
  { name: 'user', title: 'User', fields: ['client_user_id'] },
]

const defaultColumns = ['verdict', 'when', 'reason', 'page', 'from', 'browser', 'visitor', 'user']
// Always shown, because it has the link that opens the session.
const requiredColumn = 'when'

/** Returns the present values of a cell, with the fields to filter by. */
export function valuesOf({ fields = [] }: SessionColumn, row: SessionSummary) {
  const { facts, latest_decision, mark, visitor_fingerprint, client_user_id } = row
  const values: Partial<Record<Field, string | null | undefined>> = {
    ...facts,
    verdict: latest_decision.verdict,
    mark: mark?.label,
    signal: facts?.top_signal,
    asn: facts?.asn?.toString(),
    // Most sessions have the status "none".
    agent_status: facts?.agent_provider && facts.agent_status,
    visitor_id: visitor_fingerprint?.id,
    client_user_id,
  }
  return fields.flatMap((field) => {
    const value = values[field]
    return value ? [{ field, value, text: valueText(field, value) }] : []
  })
}

/** Returns the columns that the `columns` parameter of a URL names, or the default columns. */
export function columnsIn(query: URLSearchParams): SessionColumn[] {
  const requested = query.get('columns')?.split(',') ?? defaultColumns
  return columns.filter(({ name }) => name === requiredColumn || requested.includes(name))
}

/** Checkboxes for the columns of the list. The URL stores the choice. */
export function ColumnChoice({ query }: { query: URLSearchParams }) {
  const visible = columnsIn(query).map(({ name }) => name)
  const toggle = (name: string) => {
    const next = columns
      .map((column) => column.name)
      .filter((other) => visible.includes(other) !== (other === name))
    const isDefault = next.toSorted().join() === defaultColumns.toSorted().join()
    navigate(hrefWith({ columns: isDefault ? null : next.join() }), { replace: true })
  }
  return (
    <Menu label="Columns">
      <fieldset class="choices">
        {columns.map(({ name, title }) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={visible.includes(name)}
              disabled={name === requiredColumn}
              onChange={() => toggle(name)}
            />
            {title}
          </label>
        ))}
      </fieldset>
    </Menu>
  )
}

interface Sort {
  column: SessionColumn
  order: 'asc' | 'desc'
  /** False if only the loaded rows are sorted. */
  isOnServer: boolean
}

/** Returns the order that the `sort` parameter of a URL names: a column, with `-` for descending. */
function sortIn(query: URLSearchParams): Sort | undefined {
  const text = query.get('sort') ?? '-when'
  const column = columnsIn(query).find(({ name }) => name === text.replace('-', ''))
  const canSort = (name: string) => name === 'evaluated_at' || !query.get('search')
  return (
    column && {
      column,
      order: text.startsWith('-') ? 'desc' : 'asc',
      isOnServer: column.sort !== undefined && canSort(column.sort),
    }
  )
}

/** Returns the parameters of the API for an order other than the default. */
export function orderParameters(query: URLSearchParams): [string, string][] {
  const { column, order, isOnServer } = sortIn(query) ?? {}
  if (!column?.sort || !order || !isOnServer || !query.has('sort')) return []
  return [
    ['sort', column.sort],
    ['order', order],
  ]
}

const collator = new Intl.Collator('en', { numeric: true })

/** Sorts the loaded rows by a column that the server cannot sort by. Rows without a value come last. */
export function sortRows(rows: SessionSummary[], query: URLSearchParams): SessionSummary[] {
  const { column, order, isOnServer } = sortIn(query) ?? {}
  if (!column || isOnServer) return rows
  const textOf = (row: SessionSummary) =>
    column.sortText?.(row) ?? valuesOf(column, row)[0]?.text ?? ''
  const sign = order === 'asc' ? 1 : -1
  return rows.toSorted((a, b) => {
    const [x, y] = [textOf(a), textOf(b)]
    return Number(x === '') - Number(y === '') || sign * collator.compare(x, y)
  })
}

/** A column header that sorts: first descending on the server, ascending in the loaded rows, then the other way. */
export function SortHeader({ column, query }: { column: SessionColumn; query: URLSearchParams }) {
  const { name, title, sort } = column
  const current = sortIn(query)
  const order = current?.column.name === name ? current.order : undefined
  const directions = sort ? [`-${name}`, name] : [name, `-${name}`]
  const next = directions[order ? directions.indexOf(order === 'asc' ? name : `-${name}`) + 1 : 0]
  return (
    <th scope="col" aria-sort={order && (order === 'asc' ? 'ascending' : 'descending')}>
      <button
        type="button"
        class="plain"
        onClick={() => navigate(hrefWith({ sort: next ?? null }), { replace: true })}
      >
        {title}
      </button>
      {order && !current?.isOnServer && <span class="hint"> (loaded rows)</span>}
    </th>
  )
}
