import type { ComponentChildren } from 'preact'
import { hrefOf, hrefWith } from '../shared/address.ts'
import { inWords, short } from '../shared/format.ts'
import { Time } from '../shared/time.tsx'
import type { ListedSessionRow } from '../shared/types.ts'
import { VerdictBadge } from '../shared/verdict.tsx'
import { Only } from './only.tsx'

interface Column {
  title: string
  cell: (row: ListedSessionRow) => ComponentChildren
  /** Of its cells. */
  style?: 'number' | 'long'
}

/** By the name that an address has. */
const columns: Record<string, Column> = {
  verdict: {
    title: 'Verdict',
    cell: ({ latest_decision: { verdict, risk_score }, mark }) => (
      <>
        <VerdictBadge verdict={verdict} score={risk_score} />
        {mark && <span class="tag">{inWords(mark.label)}</span>}
      </>
    ),
  },
  when: { title: 'When', cell: ({ latest_decision }) => <Time at={latest_decision.evaluated_at} /> },
  session: {
    title: 'Session',
    cell: ({ id }) => (
      <a class="mono" href={hrefWith({ open: id })} title={id}>
        {short(id)}
      </a>
    ),
  },
  page: {
    title: 'Page',
    style: 'long',
    cell: ({ facts }) => (
      <>
        <Only field="page_host" value={facts?.page_host} />
        {facts?.page_path}
      </>
    ),
  },
  from: {
    title: 'From',
    cell: ({ facts }) => (
      <>
        <Only field="country" value={facts?.country} />{' '}
        <Only
          field="asn"
          value={facts?.asn?.toString()}
          text={`AS${facts?.asn}`}
          title={facts?.network_holder}
        />
      </>
    ),
  },
  network: { title: 'Network', cell: ({ facts }) => <Only field="network" value={facts?.network} /> },
  browser: {
    title: 'Browser',
    cell: ({ facts }) => (
      <>
        <Only field="browser" value={facts?.browser} /> {facts?.browser_version?.split('.')[0]}
      </>
    ),
  },
  system: { title: 'System', cell: ({ facts }) => <Only field="os" value={facts?.os} /> },
  agent: {
    title: 'Agent',
    cell: ({ facts }) => (
      <>
        <Only field="agent_provider" value={facts?.agent_provider} />{' '}
        {facts?.agent_provider && <Only field="agent_status" value={facts.agent_status} />}
      </>
    ),
  },
  user: {
    title: 'User',
    style: 'long',
    cell: ({ client_user_id }) => <Only field="client_user_id" value={client_user_id} />,
  },
  visitor: {
    title: 'Visitor',
    cell: ({ visitor_fingerprint: visitor }) =>
      visitor && (
        <a class="mono" href={hrefOf({ page: 'visitors', id: visitor.id })} title={visitor.id}>
          {short(visitor.id)}
        </a>
      ),
  },
  begun: { title: 'Begun', cell: ({ created_at }) => <Time at={created_at} /> },
  signals: {
    title: 'Signals',
    style: 'number',
    cell: ({ facts }) => <span title={facts?.signals.map(inWords).join(', ')}>{facts?.signals.length}</span>,
  },
}

const usual = ['verdict', 'when', 'session', 'page', 'from', 'browser', 'visitor', 'signals']
// Without it nothing opens the session.
export const fixed = 'session'

export interface NamedColumn extends Column {
  name: string
}

export const allColumns: readonly NamedColumn[] = Object.entries(columns).map(([name, column]) => ({
  name,
  ...column,
}))

/** Names of the columns that an address asks for, as `verdict,when`. */
export function columnsIn(query: URLSearchParams): string[] {
  const named = query.get('columns')?.split(',') ?? usual
  return allColumns.map(({ name }) => name).filter((name) => name === fixed || named.includes(name))
}

/** What the address has for them; null for the usual ones. */
export const columnsText = (names: readonly string[]): string | null =>
  names.join() === usual.join() ? null : names.join()
