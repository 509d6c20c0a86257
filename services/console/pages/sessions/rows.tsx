import { Fragment, type TargetedMouseEvent } from 'preact'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { CopyButton } from '../shared/copy.tsx'
import { shortId } from '../shared/format.ts'
import { Menu } from '../shared/menu.tsx'
import { columnsIn, type SessionColumn, SortHeader, valuesOf } from './columns.tsx'
import { filterTitles, parseFilters, withFilter, withOnlyFilter } from './fields.ts'
import { hrefOfFilters } from './filters.tsx'
import { type Selection, shownSessionId, showSession } from './selection.ts'

interface SessionRowsProps {
  rows: SessionSummary[]
  query: URLSearchParams
  selection: Selection
}

/** A table of sessions, with the columns that the URL names. */
export function SessionRows({ rows, query, selection }: SessionRowsProps) {
  const columns = columnsIn(query)
  const ids = rows.map(({ id }) => id)
  const selected = new Set(selection.ids.value)
  const openSessionId = shownSessionId()
  return (
    <div class="scroll">
      <table class="rows sessions">
        <thead>
          <tr>
            <td class="check">
              <input
                type="checkbox"
                aria-label="Select all loaded rows"
                checked={ids.every((id) => selected.has(id))}
                onChange={({ currentTarget }) => selection.set(currentTarget.checked ? ids : [])}
              />
            </td>
            {columns.map((column) => (
              <SortHeader key={column.name} {...{ column, query }} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={row.id}
              data-id={row.id}
              aria-selected={row.id === openSessionId}
              onClick={(event) => openOnClick(event, row.id)}
            >
              <td class="check">
                <input
                  type="checkbox"
                  aria-label={`Select session ${shortId(row.id)}`}
                  checked={selected.has(row.id)}
                  onClick={({ shiftKey }) =>
                    selection.toggle(row.id, { all: ids, isRange: shiftKey })
                  }
                />
              </td>
              {columns.map((column) => (
                <Cell key={column.name} {...{ column, row, query }} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

// Clicks on controls, clicks that open a tab or select text, and those on links to other pages have their own effect.
function openOnClick(event: TargetedMouseEvent<HTMLElement>, id: string): void {
  const { target, ctrlKey, metaKey, shiftKey, button } = event
  const isControl =
    target instanceof Element && target.closest('.check, button, [popover], a:not(.open)')
  const isSelecting = document.getSelection()?.isCollapsed === false
  if (isControl || isSelecting || ctrlKey || metaKey || shiftKey || button !== 0) return
  event.preventDefault()
  showSession(id)
}

interface CellProps {
  column: SessionColumn
  row: SessionSummary
  query: URLSearchParams
}

/** A cell with a menu to filter by its values. */
function Cell({ column, row, query }: CellProps) {
  const values = valuesOf(column, row)
  const texts = values.map(({ text }) => text)
  return (
    <td class="clip">
      {column.cell ? column.cell(row) : <span title={texts[0]}>{texts[0]}</span>}
      {values.length > 0 && (
        <Menu class="more" label="⋯" name={`${column.title} ${texts.join(', ')}`}>
          <ValueChoices {...{ values, query }} />
        </Menu>
      )}
    </td>
  )
}

interface ValueChoicesProps {
  values: ReturnType<typeof valuesOf>
  query: URLSearchParams
}

function ValueChoices({ values, query }: ValueChoicesProps) {
  const filters = parseFilters(query)
  return values.map(({ field, value, text }) => {
    const filter = { field, value, isNot: false }
    return (
      <Fragment key={field}>
        <a href={hrefOfFilters(withOnlyFilter(filters, filter))}>
          {filterTitles[field]} is {text}
        </a>
        <a href={hrefOfFilters(withFilter(filters, { ...filter, isNot: true }))}>
          {filterTitles[field]} is not {text}
        </a>
        <CopyButton text={value} label={`Copy ${text}`} />
      </Fragment>
    )
  })
}
