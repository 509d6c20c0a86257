import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { Panel } from '../shared/panel.tsx'
import { signalName } from '../shared/signal-names.ts'
import { type Reason, reasonsOf } from './reasons.ts'
import { createSignalFinder, type FindSignal, withCode } from './signals.tsx'

/** The reasons for a bot and for a human, in words, and the context. */
export function ReasonsSection({ session }: { session: SessionDetail }) {
  const find = createSignalFinder(session)
  const context = session.highlights.filter(({ effect }) => effect === 'context')
  return (
    <>
      <div class="columns">
        <Panel title="Reasons for bot">
          <Reasons reasons={reasonsOf(session, 'increases_risk')} find={find} />
        </Panel>
        <Panel title="Reasons for human">
          <Reasons reasons={reasonsOf(session, 'reduces_risk')} find={find} />
        </Panel>
      </div>
      {context.length > 0 && (
        <ul class="hint">
          {context.map(({ key, summary }) => (
            <li key={key}>{withCode(summary)}</li>
          ))}
        </ul>
      )}
    </>
  )
}

function Reasons({ reasons, find }: { reasons: Reason[]; find: FindSignal }) {
  if (reasons.length === 0) return <p class="hint">None</p>
  return (
    <ul class="reasons">
      {reasons.map(({ summary, signals }) => (
        <li key={summary}>
          {withCode(summary)}
          <ul class="hint">
            {signals.map((signal) => {
              const measured = find(signal)?.measured
              return (
                <li key={signal}>
                  {signalName(signal)}
                  {measured && `: ${measured}`}
                </li>
              )
            })}
          </ul>
        </li>
      ))}
    </ul>
  )
}
