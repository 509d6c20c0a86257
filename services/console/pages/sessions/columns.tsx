import type { ComponentChildren } from 'preact'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { hrefOf, hrefWith } from '../shared/address.ts'
import { inWords, shortId } from '../shared/format.ts'
import { RelativeTime } from '../shared/relative-time.tsx'
import { signalName } from '../shared/signal-names.ts'
import { VerdictBadge } from '../shared/verdict.tsx'
import { ValueMenu } from './value-menu.tsx'

interface Column {
  title: string
  cell: (row: SessionSummary, query: URLSearchParams) => ComponentChildren
  /** CSS class of the cells. */
  style?: 'number' | 'long'
}

/** Columns by their name in the URL. */
const columns: Record<string, Column> = {
  verdict: {
    title: 'Verdict',
    cell: ({ latest_decision: { verdict, risk_score }, mark }, query) => (
      <>
        <ValueMenu field="verdict" value={verdict} query={query}>
          <VerdictBadge verdict={verdict} score={risk_score} />
        </ValueMenu>
        {mark && (
          <span class="tag">
            <ValueMenu field="mark" value={mark.label} query={query}>
              {inWords(mark.label)}
            </ValueMenu>
          </span>
        )}
      </>
    ),
  },
  when: {
    title: 'When',
    cell: ({ latest_decision }) => <RelativeTime at={latest_decision.evaluated_at} />,
  },
  session: {
    title: 'Session',
    cell: ({ id }) => (
      <a class="mono" href={hrefWith({ open: id })} title={id}>
        {shortId(id)}
      </a>
    ),
  },
  page: {
    title: 'Page',
    style: 'long',
    cell: ({ facts }, query) => (
      <>
        <ValueMenu field="page_host" value={facts?.page_host} query={query} />
        <ValueMenu field="page_path" value={facts?.page_path} query={query} />
      </>
    ),
  },
  from: {
    title: 'Location',
    cell: ({ facts }, query) => (
      <>
        <ValueMenu field="country" value={facts?.country} query={query} />{' '}
        <ValueMenu
          field="asn"
          value={facts?.asn?.toString()}
          title={facts?.network_holder}
          query={query}
        >
          AS{facts?.asn}
        </ValueMenu>
      </>
    ),
  },
  network: {
    title: 'Network',
    cell: ({ facts }, query) => <ValueMenu field="network" value={facts?.network} query={query} />,
  },
  browser: {
    title: 'Browser',
    cell: ({ facts }, query) => (
      <>
        <ValueMenu field="browser" value={facts?.browser} query={query} />{' '}
        {facts?.browser_version?.split('.')[0]}
      </>
    ),
  },
  system: {
    title: 'System',
    cell: ({ facts }, query) => <ValueMenu field="os" value={facts?.os} query={query} />,
  },
  agent: {
    title: 'Agent',
    cell: ({ facts }, query) => (
      <>
        <ValueMenu field="agent_provider" value={facts?.agent_provider} query={query} />{' '}
        {facts?.agent_provider && (
          <ValueMenu field="agent_status" value={facts.agent_status} query={query} />
        )}
      </>
    ),
  },
  visitor: {
    title: 'Visitor',
    cell: ({ visitor_fingerprint: visitor }) =>
      visitor && (
        <a class="mono" href={hrefOf({ page: 'visitors', id: visitor.id })} title={visitor.id}>
          {shortId(visitor.id)}
        </a>
      ),
  },
  user: {
    title: 'User',
    style: 'long',
    cell: ({ client_user_id }, query) => (
      <ValueMenu field="client_user_id" value={client_user_id} query={query} />
    ),
  },
  begun: { title: 'Begun', cell: ({ created_at }) => <RelativeTime at={created_at} /> },
  signals: {
    title: 'Signals',
    style: 'number',
    cell: ({ facts }) => (
      <span title={facts?.signals.map(signalName).join(', ')}>{facts?.signals.length}</span>
    ),
  },
}

const defaultColumns = ['verdict', 'when', 'session', 'page', 'from', 'browser', 'visitor', 'user']
// Always shown, because it has the link that opens the session.
export const requiredColumn = 'session'

export interface NamedColumn extends Column {
  name: string
}

export const allColumns: readonly NamedColumn[] = Object.entries(columns).map(([name, column]) => ({
  name,
  ...column,
}))

/** Returns the names in the `columns` parameter of a URL, or the default columns. */
export function columnsIn(query: URLSearchParams): string[] {
  const requested = query.get('columns')?.split(',') ?? defaultColumns
  return allColumns
    .map(({ name }) => name)
    .filter((name) => name === requiredColumn || requested.includes(name))
}

/** Returns the `columns` parameter of the URL; null for the default columns. */
export const columnsParameter = (names: readonly string[]): string | null =>
  names.join() === defaultColumns.join() ? null : names.join()
