import type { ComponentChildren } from 'preact'
import type { Verdict } from '../../../../schemas/events.ts'
import type { ScoreExplanation } from '../../../readback/schemas/score.ts'
import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { Panel } from '../shared/panel.tsx'
import { VerdictBadge } from '../shared/values.tsx'
import { createSignalFinder, type FindSignal, SignalDetails, SignalList } from './signals.tsx'

/** The steps from 0 to the score, followed by the signals that fired without changing it. */
export function ScoreBreakdown({ session }: { session: SessionDetail }) {
  const { scoring, score, signals_fired: fired } = session
  if (!score) return null
  const find = createSignalFinder(session)
  const context = fired.filter(({ role }) => role === 'context').map(({ signal }) => signal)
  return (
    <Panel title="Score breakdown">
      {score.steps ? (
        <Steps steps={score.steps} find={find} />
      ) : (
        <p class="hint">The model of this decision ({scoring.model}) is not stored here.</p>
      )}
      <SignalList title="Not counted" names={score.without_effect} find={find} />
      <SignalList title="Context (0 points)" names={context} find={find} />
    </Panel>
  )
}

type ScoreSteps = NonNullable<ScoreExplanation['steps']>

function Steps({ steps, find }: { steps: ScoreSteps; find: FindSignal }) {
  if (steps.length === 0)
    return <p class="hint">No risk or trust signal fired, so the score is 0.</p>
  return (
    <table class="breakdown">
      <thead>
        <tr>
          <th scope="col" aria-label="Step">
            <ScoreScale />
          </th>
          <th scope="col" class="number">
            Points
          </th>
          <th scope="col" class="number">
            Score
          </th>
        </tr>
      </thead>
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
                {formatScore(Math.round(step.total))}
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
  if (kind === 'signal' && firedSignal) return <SignalDetails finding={firedSignal} />
  return <span class="hint">{rules[kind]?.(bound ?? 0, firedSignal?.name ?? signal) ?? kind}</span>
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

const formatScore = (value: number): string => `${value < 0 ? '−' : ''}${Math.abs(value)}`
const formatSigned = (value: number): string => `${value < 0 ? '' : '+'}${formatScore(value)}`

/** Scores by verdict, the same for every model. */
const bands: readonly { verdict: Verdict; from: number; to: number }[] = [
  { verdict: 'human', from: 0, to: 39 },
  { verdict: 'inconclusive', from: 40, to: 69 },
  { verdict: 'bot', from: 70, to: 100 },
]

export function DecisionBadge({ risk_score }: { risk_score: number }) {
  const verdict = bands.find(({ to }) => risk_score <= to)?.verdict ?? 'bot'
  return <VerdictBadge {...{ verdict, risk_score }} />
}

/** The scale of the bars below, divided by verdict. */
function ScoreScale() {
  return (
    <div class="scale">
      {bands.map(({ verdict, from, to }) => (
        <span key={verdict} style={{ borderColor: `var(--${verdict})` }}>
          {verdict} {from}–{to}
        </span>
      ))}
    </div>
  )
}

/** A bar from one score to another, with lines at the verdict thresholds. */
function ChangeBar({ from, to }: { from: number; to: number }) {
  const [low = 0, high = 0] = [from, to]
    .map((score) => Math.min(100, Math.max(0, score)))
    .toSorted((a, b) => a - b)
  return (
    <svg class="change" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      {bands.slice(1).map(({ from: threshold }) => (
        <line key={threshold} x1={threshold} x2={threshold} y1="0" y2="8" />
      ))}
      <rect
        style={{ fill: `var(--${to < from ? 'human' : 'bot'})` }}
        x={low}
        y="1"
        width={Math.max(0.4, high - low)}
        height="6"
      />
    </svg>
  )
}
