import { useEffect, useRef, useState } from 'preact/hooks'
import type { ErrorDetails } from '../../../../infra/errors/field-problem.ts'
import type { Erasure } from '../../../erasure/schemas.ts'
import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { downloadJson } from '../shared/download.ts'
import { formatDateTime, formatNumber, inWords } from '../shared/format.ts'
import { usePages } from '../shared/pages.tsx'
import { FactList, FactPanel } from '../shared/panel.tsx'
import { hasScope } from '../shared/person.ts'
import { isoTime, now } from '../shared/span.ts'
import { IdLink, ShortId, VerdictBadge } from '../shared/values.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { Actions } from './actions.tsx'
import { browserText } from './group-by-visitor.ts'
import { TimeLine } from './time-line.tsx'
import './visitors.css'

export function VisitorPage({ id }: { id: string }) {
  const [erasure, setErasure] = useState<Erasure | null>(null)
  return (
    <>
      <p>
        <a href={hrefOf({ page: 'visitors' })}>Visitors</a>
      </p>
      {erasure ? <Receipt erasure={erasure} /> : <VisitorView id={id} onErased={setErasure} />}
    </>
  )
}

function VisitorView({ id, onErased }: { id: string; onErased: (erasure: Erasure) => void }) {
  const encodedId = encodeURIComponent(id)
  const paths = {
    visitor: `/v1/fingerprints/${encodedId}`,
    sessions: `/v1/sessions?visitor_id=${encodedId}&include=resolution&limit=50`,
  }
  const visitor = useResponse<{ data: VisitorSummary }>(paths.visitor)
  const sessions = usePages<SessionSummary>(paths.sessions)
  const [selected, setSelected] = useState<string[]>([])
  const { details } = visitor.failure ?? {}
  if (details?.merged_into || details?.erasure) return <Gone id={id} {...details} />
  // A split moves the selected sessions away.
  const shown = selected.filter((sessionId) => sessions.rows.some((row) => row.id === sessionId))
  return (
    <>
      <Loaded response={visitor} lines={8}>
        {({ data }) => (
          <>
            <header class="panel">
              <div class="title">
                <h1>
                  Visitor <ShortId id={id} />
                </h1>
                <Actions visitor={data} selected={shown} onErased={onErased} />
              </div>
              <About visitor={data} rows={sessions.rows} />
            </header>
            <TimeLine
              sessions={sessions}
              selected={shown}
              onSelect={hasScope('visitors:manage') ? setSelected : undefined}
            />
          </>
        )}
      </Loaded>
      <ApiRequest paths={Object.values(paths)} />
    </>
  )
}

function Gone({ id, merged_into: mergedInto, erasure }: ErrorDetails & { id: string }) {
  return (
    <section class="note">
      <h1>{erasure ? 'This visitor was erased' : 'This visitor was merged into another'}</h1>
      {erasure && (
        <p>
          Erased on {formatDateTime(erasure.erased_at)} (<code>{erasure.id}</code>)
        </p>
      )}
      {mergedInto && (
        <p>
          The sessions of <ShortId id={id} /> moved to <IdLink id={mergedInto} />.
        </p>
      )}
    </section>
  )
}

/** Users, countries and devices of the loaded sessions. */
function About({ visitor, rows }: { visitor: VisitorSummary; rows: SessionSummary[] }) {
  const { id, lifecycle, latest_request, storage } = visitor
  const [newest] = rows
  const facts = newest?.facts
  const distinct = (values: (string | null | undefined)[]) => [
    ...new Set(values.flatMap((value) => value ?? [])),
  ]
  const query = new URLSearchParams({
    visitor_id: id,
    since: lifecycle.first_seen_at,
    until: isoTime(now.value),
  })
  const users = distinct(rows.map(({ client_user_id }) => client_user_id))
  return (
    <FactList
      facts={{
        Verdict: newest && <VerdictBadge {...newest.latest_decision} />,
        Sessions: (
          <a href={hrefOf({ page: 'sessions', query })}>{formatNumber(lifecycle.seen_count)}</a>
        ),
        'First seen': formatDateTime(lifecycle.first_seen_at),
        'Last seen': formatDateTime(lifecycle.last_seen_at),
        Users: users.length > 0 ? users.map((user) => <UserLink key={user} user={user} />) : null,
        Labels: distinct(rows.map(({ mark }) => mark?.label))
          .map(inWords)
          .join(', '),
        Countries: distinct(rows.map(({ facts }) => facts?.country)).join(', '),
        'IP address': latest_request.ip_address,
        Browser: (
          <span title={latest_request.user_agent}>{facts ? browserText(facts) : 'unknown'}</span>
        ),
        'Storage available': Object.entries(storage)
          .flatMap(([name, isAvailable]) => (isAvailable ? [inWords(name)] : []))
          .join(', '),
      }}
    />
  )
}

const UserLink = ({ user }: { user: string }) => (
  <a class="of-user" href={hrefOf({ page: 'visitors', query: new URLSearchParams({ user }) })}>
    {user}
  </a>
)

/** The receipt of an erasure. It is shown only once. */
function Receipt({ erasure }: { erasure: Erasure }) {
  const title = useRef<HTMLHeadingElement>(null)
  useEffect(() => title.current?.focus(), [])
  const counts = Object.entries(erasure.counts).map(([kind, count]) => [
    inWords(kind),
    formatNumber(count),
  ])
  return (
    <>
      <h1 ref={title} tabIndex={-1}>
        Erased
      </h1>
      <FactPanel
        title="Receipt"
        facts={{
          Erasure: <code>{erasure.id}</code>,
          Visitor: <code>{erasure.visitor_id}</code>,
          'Erased at': formatDateTime(erasure.erased_at),
          ...Object.fromEntries(counts),
        }}
      />
      <p>
        <button type="button" onClick={() => downloadJson(erasure, erasure.id)}>
          Save receipt
        </button>
      </p>
    </>
  )
}
