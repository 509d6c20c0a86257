import type { ComponentChildren } from 'preact'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { inWords, shortId } from '../shared/format.ts'
import { Menu } from '../shared/menu.tsx'
import { IdLink, RelativeTime, VerdictBadge } from '../shared/values.tsx'
import { type Field, fieldNames, valueText } from './fields.ts'

type FieldValues = Partial<Record<Field, string | null | undefined>>

interface Column {
  title: string
  /** Order on the server. Other columns sort the loaded rows. */
  sort?: 'evaluated_at' | 'risk_score'
  /** Values to filter by. The first field's value sorts the loaded rows, unless `sortValue` is set. */
  values?: (row: SessionSummary) => FieldValues
  sortValue?: (row: SessionSummary) => string | number | undefined
  /** Default: the first of the values. */
  cell?: (row: SessionSummary) => ComponentChildren
}

/** Columns by their name in the URL. */
const columns: Record<string, Column> = {
  verdict: {
    title: 'Verdict',
    sort: 'risk_score',
    values: ({ latest_decision: { verdict }, mark }) => ({ verdict, mark: mark?.label }),
    sortValue: ({ latest_decision }) => latest_decision.risk_score,
    cell: ({ latest_decision, mark }) => (
      <>
        <VerdictBadge {...latest_decision} />
        {mark && <span class="badge">{inWords(mark.label)}</span>}
      </>
    ),
  },
  when: {
    title: 'Time',
    sort: 'evaluated_at',
    cell: ({ id, latest_decision }) => (
      <a class="open" href={hrefOf({ page: 'sessions', id })}>
        <span class="hidden">Session {shortId(id)}, </span>
        <RelativeTime at={latest_decision.evaluated_at} />
      </a>
    ),
  },
  reason: { title: 'Top reason', values: ({ facts }) => ({ signal: facts?.top_signal }) },
  page: {
    title: 'Path',
    values: ({ facts }) => ({ page_path: facts?.page_path, page_host: facts?.page_host }),
  },
  host: { title: 'Host', values: ({ facts }) => ({ page_host: facts?.page_host }) },
  from: {
    title: 'Location and network',
    values: ({ facts }) => ({ country: facts?.country, asn: facts?.asn?.toString() }),
    cell: ({ facts }) =>
      [facts?.country, facts?.network_holder ?? (facts?.asn && `AS${facts.asn}`)]
        .filter(Boolean)
        .join(' · '),
  },
  network: { title: 'Network type', values: ({ facts }) => ({ network: facts?.network }) },
  browser: {
    title: 'Browser',
    values: ({ facts }) => ({ browser: facts?.browser, os: facts?.os }),
    cell: ({ facts }) => `${facts?.browser ?? ''} ${facts?.browser_version?.split('.')[0] ?? ''}`,
  },
  system: { title: 'System', values: ({ facts }) => ({ os: facts?.os }) },
  agent: {
    title: 'Agent',
    // Most sessions have the status "none".
    values: ({ facts }) =>
      facts?.agent_provider
        ? { agent_provider: facts.agent_provider, agent_status: facts.agent_status }
        : {},
    cell: ({ facts }) => facts?.agent_provider && `${facts.agent_provider} ${facts.agent_status}`,
  },
  visitor: {
    title: 'Visitor',
    values: ({ visitor_fingerprint: visitor }) => ({ visitor_id: visitor?.id }),
    cell: ({ visitor_fingerprint: visitor }) => visitor && <IdLink id={visitor.id} />,
  },
  user: { title: 'User', values: ({ client_user_id }) => ({ client_user_id }) },
}

const defaultColumns = ['verdict', 'when', 'reason', 'page', 'from', 'browser', 'visitor', 'user']
// Always shown, because it has the link that opens the session.
const requiredColumn = 'when'

export interface NamedColumn extends Column {
  name: string
}

const allColumns: readonly NamedColumn[] = Object.entries(columns).map(([name, column]) => ({
  name,
  ...column,
}))

/** Returns the present values of a cell, with the fields to filter by. */
export function valuesOf(column: Column, row: SessionSummary): { field: Field; value: string }[] {
  const values = column.values?.(row) ?? {}
  return fieldNames.flatMap((field) => {
    const value = values[field]
    return value ? [{ field, value }] : []
  })
}

/** Returns the columns that the `columns` parameter of a URL names, or the default columns. */
export function columnsIn(query: URLSearchParams): NamedColumn[] {
  const requested = query.get('columns')?.split(',') ?? defaultColumns
  return allColumns.filter(({ name }) => name === requiredColumn || requested.includes(name))
}

/** Checkboxes for the columns of the list. The URL stores the choice. */
export function ColumnChoice({ query }: { query: URLSearchParams }) {
  const visible = columnsIn(query).map(({ name }) => name)
  const toggle = (name: string) => {
    const next = allColumns
      .map((column) => column.name)
      .filter((other) => visible.includes(other) !== (other === name))
    const isDefault = next.toSorted().join() === defaultColumns.toSorted().join()
    navigate(hrefWith({ columns: isDefault ? null : next.join() }), { replace: true })
  }
  return (
    <Menu label="Columns">
      <fieldset class="choices">
        {allColumns.map(({ name, title }) => (
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
  column: NamedColumn
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

/** Sorts the loaded rows by a column that the server cannot sort by. Rows without a value come last. */
export function sortRows(rows: SessionSummary[], query: URLSearchParams): SessionSummary[] {
  const { column, order, isOnServer } = sortIn(query) ?? {}
  if (!column || isOnServer) return rows
  const keyed = rows.map((row) => ({ row, key: sortKey(column, row) }))
  const sign = order === 'asc' ? 1 : -1
  return keyed
    .toSorted((a, b) => {
      if (a.key === undefined || b.key === undefined)
        return Number(a.key === undefined) - Number(b.key === undefined)
      return sign * (a.key < b.key ? -1 : Number(a.key > b.key))
    })
    .map(({ row }) => row)
}

function sortKey(column: NamedColumn, row: SessionSummary): string | number | undefined {
  if (column.sortValue) return column.sortValue(row)
  const [first] = valuesOf(column, row)
  return first && valueText(first.field, first.value).toLowerCase()
}

/** A column header that sorts: first descending on the server, ascending in the loaded rows, then the other way. */
export function SortHeader({ column, query }: { column: NamedColumn; query: URLSearchParams }) {
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
