import { useState } from 'preact/hooks'
import type { Erasure } from '../../../erasure/schemas.ts'
import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { formatDateTime, formatNumber, inWords } from '../shared/format.ts'
import { usePages } from '../shared/pages.ts'
import { FactList, Panel } from '../shared/panel.tsx'
import { hasScope } from '../shared/person.ts'
import { Loaded } from '../shell/loaded.tsx'
import { Actions, splitFormId } from './actions.tsx'
import { Receipt } from './receipt.tsx'
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
  const survivorId = visitor.failure?.mergedInto
  if (survivorId) return <Merged id={id} survivorId={survivorId} />
  return (
    <>
      <div>
        <h1>Visitor</h1>
        <p class="mono">{id}</p>
      </div>
      <Loaded response={visitor}>
        {({ data }) => (
          <div class="visitor">
            <About visitor={data} users={usersOf(sessions.rows)} />
            <TimeLine sessions={sessions} form={hasScope('visitors:manage') ? splitFormId : null} />
            <Actions visitor={data} onErased={onErased} />
          </div>
        )}
      </Loaded>
      <ApiRequest paths={Object.values(paths)} />
    </>
  )
}

function Merged({ id, survivorId }: { id: string; survivorId: string }) {
  return (
    <section class="note">
      <h1>This visitor was merged into another</h1>
      <p>
        The sessions of <span class="mono">{id}</span> moved to{' '}
        <a class="mono" href={hrefOf({ page: 'visitors', id: survivorId })}>
          {survivorId}
        </a>
        .
      </p>
    </section>
  )
}

const usersOf = (rows: SessionSummary[]): string[] => [
  ...new Set(rows.flatMap(({ client_user_id }) => client_user_id ?? [])),
]

function About({ visitor, users }: { visitor: VisitorSummary; users: string[] }) {
  const { id, lifecycle, latest_request, storage } = visitor
  const sessions = new URLSearchParams({ visitor_id: id, last: '30d' })
  const storages = Object.entries(storage).flatMap(([name, isAvailable]) =>
    isAvailable ? [name] : [],
  )
  return (
    <Panel title="Profile">
      <FactList
        facts={{
          'First seen': formatDateTime(lifecycle.first_seen_at),
          'Last seen': formatDateTime(lifecycle.last_seen_at),
          Sessions: (
            <a href={hrefOf({ page: 'sessions', query: sessions })}>
              {formatNumber(lifecycle.seen_count)}
            </a>
          ),
          Users:
            users.length === 0
              ? null
              : users.map((user) => (
                  <a
                    key={user}
                    class="of-user"
                    href={hrefOf({ page: 'visitors', query: new URLSearchParams({ user }) })}
                  >
                    {user}
                  </a>
                )),
          'User agent': latest_request.user_agent,
          'IP address': latest_request.ip_address,
          'Storage available': storages.map(inWords).join(', '),
        }}
      />
    </Panel>
  )
}
