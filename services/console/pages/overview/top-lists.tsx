import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { filterTitles, valueText } from '../sessions/fields.ts'
import { useCounts } from '../shared/counts.ts'
import { DataTable } from '../shared/data-table.tsx'
import { formatNumber, formatPercent } from '../shared/format.ts'
import { Panel } from '../shared/panel.tsx'
import { type TimeSpan, timesOf } from '../shared/span.ts'
import { Loaded } from '../shell/loaded.tsx'
import { liftSignals, sumSessions } from './compare.ts'
import { countedSpan, groupingBy, sessionsHref } from './links.ts'

interface Row {
  value: string
  cells: [string, string]
}

interface TopList {
  title: string
  field: GroupField
  filters?: Record<string, string>
  /** Default: the field. */
  groupBy?: string
  columns?: [string, string]
  rowsOf?: (counts: SessionAggregates, byVerdict: SessionAggregates) => Row[]
}

const lists: TopList[] = [
  {
    title: 'Top bot signals',
    field: 'signal',
    filters: { verdict: 'bot' },
    groupBy: 'signal,verdict',
    columns: ['Of bots', 'vs. others'],
    rowsOf: signalRows,
  },
  { title: 'Paths', field: 'page_path' },
  { title: 'Top bot networks', field: 'asn', filters: { verdict: 'bot' } },
  { title: 'Countries', field: 'country' },
  { title: 'Agents', field: 'agent_provider' },
  {
    title: 'Abandoned before submit',
    field: 'page_host',
    filters: { handed_off: 'false' },
    groupBy: 'page_host,handed_off',
    rowsOf: abandonedRows,
  },
]

interface TopListsProps {
  span: TimeSpan
  /** Counts by verdict. */
  byVerdict: SessionAggregates
}

/** The most frequent values of several fields. Each list is loaded once it is on the screen. */
export function TopLists(props: TopListsProps) {
  return (
    <div class="columns">
      {lists.map((list) => (
        <TopListPanel key={list.title} {...{ list, ...props }} />
      ))}
    </div>
  )
}

interface TopListProps extends TopListsProps {
  list: TopList
}

function TopListPanel(props: TopListProps) {
  const panel = useRef<HTMLDivElement>(null)
  const isVisible = useSignal(false)
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) isVisible.value = true
    })
    if (panel.current) observer.observe(panel.current)
    return () => observer.disconnect()
  }, [])
  return (
    <div ref={panel} class="top-values">
      <Panel title={props.list.title}>{isVisible.value && <TopTable {...props} />}</Panel>
    </div>
  )
}

const rowCount = 5

function TopTable({ list, span, byVerdict }: TopListProps) {
  const { field, filters = {}, columns = ['Sessions', 'Share'] } = list
  const grouping = list.groupBy
    ? groupingBy(list.groupBy, '100')
    : { ...groupingBy(field, '20'), ...filters }
  const response = useCounts(new URLSearchParams({ ...timesOf(span), ...grouping }))
  return (
    <Loaded response={response} lines={rowCount}>
      {({ data }) => {
        const rows = (list.rowsOf ?? rowsOf)(data, byVerdict)
        const counted = countedSpan(span, data)
        if (rows.length === 0) return <p class="hint">No data in this period</p>
        return (
          <>
            <DataTable
              label={list.title}
              rows={rows.slice(0, rowCount)}
              keyOf={({ value }) => value}
              columns={{
                [filterTitles[field]]: {
                  class: 'clip',
                  cell: ({ value }) => (
                    <a href={sessionsHref(counted, { ...filters, [field]: value })}>
                      {valueText(field, value)}
                    </a>
                  ),
                },
                [columns[0]]: { class: 'number', cell: ({ cells }) => cells[0] },
                [columns[1]]: { class: 'number', cell: ({ cells }) => cells[1] },
              }}
            />
            {rows.length > rowCount && (
              <a href={sessionsHref(counted, { ...filters, group: field })}>More</a>
            )}
            {!data.is_complete && <p class="hint">Newest sessions only</p>}
          </>
        )
      }}
    </Loaded>
  )
}

function rowsOf({ groups, sessions: total }: SessionAggregates): Row[] {
  return groups.flatMap(({ values, sessions }) => {
    const [value] = Object.values(values)
    return value ? [{ value, cells: [formatNumber(sessions), formatPercent(sessions, total)] }] : []
  })
}

function signalRows(
  { groups, sessions, is_complete, since }: SessionAggregates,
  byVerdict: SessionAggregates,
): Row[] {
  const counted = byVerdict.groups.filter(({ start }) => is_complete || (start ?? '') >= since)
  const bots = sumSessions(counted, { verdict: 'bot' })
  return liftSignals(groups, { bots, others: sessions - bots }).map(({ signal, share, lift }) => ({
    value: signal,
    cells: [formatPercent(share, 1), lift > 100 ? '>×100' : `×${formatNumber(lift)}`],
  }))
}

function abandonedRows({ groups }: SessionAggregates): Row[] {
  const hosts = [...new Set(groups.flatMap(({ values }) => values.page_host ?? []))]
  return hosts
    .map((host) => ({
      value: host,
      missing: sumSessions(groups, { page_host: host, handed_off: 'false' }),
      all: sumSessions(groups, { page_host: host }),
    }))
    .filter(({ missing }) => missing > 0)
    .sort((a, b) => b.missing - a.missing)
    .map(({ value, missing, all }) => ({
      value,
      cells: [formatNumber(missing), formatPercent(missing, all)],
    }))
}
