import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { hrefWith, navigate } from '../shared/address.ts'
import { columnsIn, type NamedColumn, valuesOf } from './columns.tsx'
import { valueText } from './fields.ts'

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
