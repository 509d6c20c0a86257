import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { CodeBlock } from '../shared/code-block.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { SessionHeader } from './header.tsx'
import { ReasonsSection } from './reasons-section.tsx'
import { RelatedSection } from './related.tsx'
import { ScoreBreakdown } from './score.tsx'
import './session.css'
import { SessionContext } from './session-context.tsx'
import { TimelineSection } from './timeline.tsx'

export function SessionPage({ id }: { id: string }) {
  return (
    <>
      <p>
        <a href={hrefOf({ page: 'sessions' })}>Sessions</a>
      </p>
      <SessionView id={id} />
    </>
  )
}

/** A session, as a page or beside the list. */
export function SessionView({ id }: { id: string }) {
  const path = `/v1/sessions/${encodeURIComponent(id)}?include=score&include=timeline&include=log`
  const response = useResponse<{ data: SessionDetail }>(path, { pollMs: 5000 })
  return (
    <div class="session-view">
      <Loaded response={response} lines={12}>
        {({ data }) => <Session session={data} />}
      </Loaded>
      <ApiRequest paths={[path]} />
    </div>
  )
}

function Session({ session }: { session: SessionDetail }) {
  return (
    <article class="session">
      <SessionHeader session={session} />
      <div class="why">
        <ReasonsSection session={session} />
        <ScoreBreakdown session={session} />
      </div>
      <div class="beside">
        <TimelineSection session={session} />
        <RelatedSection session={session} />
      </div>
      <SessionContext session={session} />
      <details>
        <summary>Raw JSON</summary>
        <CodeBlock code={JSON.stringify(session, null, 2)} />
      </details>
    </article>
  )
}
