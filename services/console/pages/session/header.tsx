import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { callApi } from '../shared/api.ts'
import { showForm } from '../shared/form-dialog.tsx'
import { formatDateTime, inWords } from '../shared/format.ts'
import { FactList } from '../shared/panel.tsx'
import { hasScope } from '../shared/person.ts'
import { RelativeTime, ShortId } from '../shared/values.tsx'
import { LabelButtons } from './label-buttons.tsx'
import { DecisionBadge } from './score.tsx'

/** The verdict, with who, where and when. */
export function SessionHeader({ session }: { session: SessionDetail }) {
  const { id, decision, mark, network, request, browser, device } = session
  const { location, routing } = network
  const { name: systemName, version: systemVersion } = device.operating_system
  const page = URL.parse(request.url)
  return (
    <header class="panel">
      <div class="title">
        <h1>
          <DecisionBadge {...decision} />
        </h1>
        <p class="hint">
          {decision.decision_status} decision <RelativeTime at={decision.evaluated_at} />
          {mark && `, labeled ${inWords(mark.label)}`}
        </p>
        <LabelButtons sessionId={id} current={mark?.label ?? null} />
      </div>
      <FactList
        facts={{
          Visitor: <Visitor visitor={session.visitor_fingerprint} />,
          User: <AttachUser sessionId={id} user={session.client_user_id} />,
          Location: [location?.city, location?.country].filter(Boolean).join(', '),
          Network:
            routing.asn && `AS${routing.asn.replace(/^AS/, '')} ${routing.organization ?? ''}`,
          'IP address': network.ip_address,
          Page: page && <span title={request.url}>{page.host + page.pathname}</span>,
          Browser: [browser.name, browser.major_version].filter(Boolean).join(' '),
          System: [systemName, systemVersion].filter(Boolean).join(' '),
          Opened: formatDateTime(session.created_at),
          Session: <ShortId id={id} />,
        }}
      />
    </header>
  )
}

function Visitor({ visitor }: { visitor: SessionDetail['visitor_fingerprint'] }) {
  if (!visitor) return 'none'
  const isNew = visitor.resolution.method?.endsWith('new')
  return (
    <>
      <ShortId id={visitor.id} isLink /> <span class="badge">{isNew ? 'new' : 'known'}</span>
    </>
  )
}

/** The session's user, with a dialog that attaches another or removes it. */
function AttachUser({ sessionId, user }: { sessionId: string; user: string | null }) {
  const attach = () =>
    showForm({
      title: 'Attach a user',
      action: 'Save',
      fields: [
        {
          name: 'client_user_id',
          label: 'Your user id',
          hint: 'Empty removes the user.',
          value: user,
        },
      ],
      async submit({ client_user_id: text }) {
        const body = { client_user_id: String(text).trim() || null }
        await callApi(`/v1/sessions/${sessionId}`, { method: 'PATCH', body })
      },
    })
  const query = new URLSearchParams({ user: user ?? '' })
  return (
    <>
      {user === null ? 'none' : <a href={hrefOf({ page: 'visitors', query })}>{user}</a>}{' '}
      {hasScope('sessions:update') && (
        <button type="button" class="plain hint" onClick={attach}>
          {user === null ? 'Attach' : 'Change'}
        </button>
      )}
    </>
  )
}
