import type { ComponentChildren } from 'preact'
import type { ScoreExplanation } from '../../../readback/schemas/score.ts'
import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { Panel } from '../shared/panel.tsx'
import { TableHead } from '../shared/table-head.tsx'
import { ChangeBar, ScoreBand } from './band.tsx'
import { createSignalFinder, type FindSignal, SignalDetails, SignalList } from './signals.tsx'

/** The steps from 0 to the score, followed by the signals that fired without changing it. */
export function ScoreBreakdown({
  session,
  score,
}: {
  session: SessionDetail
  score: ScoreExplanation
}) {
  const { decision, scoring, signals_fired: fired } = session
  const find = createSignalFinder(session, score)
  const firedNames = (role: string) =>
    fired.filter((signal) => signal.role === role).map(({ signal }) => signal)
  return (
    <Panel title="Score breakdown">
      <ScoreBand score={decision.risk_score} />
      {score.steps ? (
        <Steps steps={score.steps} find={find} />
      ) : (
        <>
          <p class="hint">
            The model of this decision ({scoring.model}) is not stored here, so only the signals
            that fired are shown.
          </p>
          <SignalList title="Risk" names={firedNames('risk')} find={find} />
          <SignalList title="Trust" names={firedNames('trust')} find={find} />
        </>
      )}
      <SignalList title="Not counted" names={score.without_effect} find={find} />
      <SignalList title="Context (0 points)" names={firedNames('context')} find={find} />
    </Panel>
  )
}

type ScoreSteps = NonNullable<ScoreExplanation['steps']>

function Steps({ steps, find }: { steps: ScoreSteps; find: FindSignal }) {
  if (steps.length === 0)
    return <p class="hint">No risk or trust signal fired, so the score is 0.</p>
  return (
    <table class="steps">
      <TableHead columns={['Step', 'Points', 'Score']} numericColumns={['Points', 'Score']} />
      <tbody>
        {steps
          .filter(({ kind }) => kind !== 'rounding')
          .map((step) => (
            <tr key={`${step.kind} ${step.signal}`}>
              <td>
                <Step step={step} find={find} />
                <ChangeBar from={step.total - step.change} to={step.total} />
              </td>
              <td class="number" title={String(step.change)}>
                {formatSigned(roundedChange(step))}
              </td>
              <td class="number" title={String(step.total)}>
                {Math.round(step.total)}
              </td>
            </tr>
          ))}
      </tbody>
    </table>
  )
}

function Step({ step, find }: { step: ScoreSteps[number]; find: FindSignal }) {
  const { kind, signal, bound } = step
  const firedSignal = signal === null ? undefined : find(signal)
  if (kind === 'signal' && firedSignal) return <SignalDetails {...firedSignal} />
  return <span class="rule">{rules[kind]?.(bound ?? 0, firedSignal?.name ?? signal) ?? kind}</span>
}

type Rule = (bound: number, signal: string | null) => ComponentChildren

const rules: Record<string, Rule> = {
  weak_limit: (bound) => `Weak signals are capped at ${bound} points`,
  habits_limit: (bound) => `Behavior is capped at ${bound} points`,
  trust_limit: (bound) => `Trust reduces the score by at most ${bound} points`,
  least: () => 'The score cannot be below 0',
  unconfirmed_cap: (bound) => `Capped at ${bound}: not confirmed by another kind of signal`,
  no_snapshot_floor: (bound) => `At least ${bound}: no readable snapshot`,
  signal_floor: (bound, signal) => `At least ${bound}: ${signal}`,
}

// Between rounded totals, so that the shown changes add up to the score.
const roundedChange = ({ change, total }: ScoreSteps[number]): number =>
  Math.round(total) - Math.round(total - change)

const formatSigned = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value)}`
