import { useState } from 'preact/hooks'
import type { Erasure } from '../../../erasure/schemas.ts'
import type { VisitorSummary } from '../../../readback/schemas/fingerprints.ts'
import type { SessionSummary } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { useAnswer } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { exact, formatNumber, inWords } from '../shared/format.ts'
import { usePages } from '../shared/pages.ts'
import { FactList, Panel } from '../shared/parts.tsx'
import { may } from '../shared/person.ts'
import { Loaded } from '../shell/states.tsx'
import { Actions, splitForm } from './actions.tsx'
import { Receipt } from './receipt.tsx'
import { TimeLine } from './time-line.tsx'
import './visitors.css'

/** One visitor: who it is, its sessions and how they are linked, and what can be done about it. */
export function VisitorPage({ id }: { id: string }) {
  const [erasure, setErasure] = useState<Erasure | null>(null)
  return (
    <>
      <p>
        <a href={hrefOf({ page: 'visitors' })}>Visitors</a>
      </p>
      {erasure ? <Receipt erasure={erasure} /> : <Present id={id} erased={setErasure} />}
    </>
  )
}

function Present({ id, erased }: { id: string; erased: (erasure: Erasure) => void }) {
  const named = encodeURIComponent(id)
  const paths = {
    visitor: `/v1/fingerprints/${named}`,
    sessions: `/v1/sessions?visitor_id=${named}&include=resolution&limit=50`,
  }
  const visitor = useAnswer<{ data: VisitorSummary }>(paths.visitor)
  const sessions = usePages<SessionSummary>(paths.sessions)
  const into = visitor.failure?.mergedInto
  if (into) return <Merged id={id} into={into} />
  return (
    <>
      <div>
        <h1>Visitor</h1>
        <p class="mono">{id}</p>
      </div>
      <Loaded answer={visitor}>
        {({ data }) => (
          <div class="visitor">
            <About visitor={data} users={usersOf(sessions.rows)} />
            <TimeLine sessions={sessions} form={may('visitors:manage') ? splitForm : null} />
            <Actions visitor={data} erased={erased} />
          </div>
        )}
      </Loaded>
      <ApiRequest paths={Object.values(paths)} />
    </>
  )
}

function Merged({ id, into }: { id: string; into: string }) {
  return (
    <section class="note">
      <h1>This visitor was merged into another one</h1>
      <p>
        The sessions of <span class="mono">{id}</span> are now those of{' '}
        <a class="mono" href={hrefOf({ page: 'visitors', id: into })}>
          {into}
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
  const kept = Object.entries(storage).flatMap(([name, isAvailable]) => (isAvailable ? [name] : []))
  return (
    <Panel title="Who it is">
      <FactList
        facts={{
          'Known since': exact(lifecycle.first_seen_at),
          'Seen last': exact(lifecycle.last_seen_at),
          Sessions: (
            <a href={hrefOf({ page: 'sessions', query: sessions })}>
              {formatNumber(lifecycle.seen_count)}
            </a>
          ),
          'Users of these sessions':
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
          Address: latest_request.ip_address,
          'Could be kept in': kept.map(inWords).join(', '),
        }}
      />
    </Panel>
  )
}
