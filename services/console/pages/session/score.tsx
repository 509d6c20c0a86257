import type { ComponentChildren } from 'preact'
import type { ScoreExplanation } from '../../../readback/schemas/score.ts'
import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { Head } from '../shared/head.tsx'
import { Panel } from '../shared/parts.tsx'
import { ChangeBar, ScoreBand } from './band.tsx'
import { type FindSignal, SignalDetails, SignalList, signalsOf } from './signals.tsx'

/** How the score came about: each step from 0 to it, and apart from them what fired and counted nothing. */
export function ScoreBreakdown({
  session,
  score,
}: {
  session: SessionDetail
  score: ScoreExplanation
}) {
  const { decision, scoring, signals_fired: fired } = session
  const find = signalsOf(session, score)
  const namesOf = (role: string) =>
    fired.filter((one) => one.role === role).map(({ signal }) => signal)
  return (
    <Panel title={`How the score of ${decision.risk_score} came about`}>
      <ScoreBand score={decision.risk_score} />
      {score.steps ? (
        <Steps steps={score.steps} find={find} />
      ) : (
        <>
          <p class="hint">
            The points of the model that decided ({scoring.model}) are not known here, so these are
            the signals that fired, and no steps.
          </p>
          <SignalList title="Risk" names={namesOf('risk')} find={find} />
          <SignalList title="Trust" names={namesOf('trust')} find={find} />
        </>
      )}
      <SignalList
        title="Overruled by what decides alone"
        names={score.without_effect}
        find={find}
      />
      <SignalList title="Context, which counts nothing" names={namesOf('context')} find={find} />
    </Panel>
  )
}

type ScoreSteps = NonNullable<ScoreExplanation['steps']>

function Steps({ steps, find }: { steps: ScoreSteps; find: FindSignal }) {
  if (steps.length === 0) return <p class="hint">No signal that counts fired, so the score is 0.</p>
  return (
    <table class="steps">
      <Head columns={['Step', 'Points', 'Score']} numbers={['Points', 'Score']} />
      <tbody>
        {steps.map((step) => (
          <tr key={`${step.kind} ${step.signal}`}>
            <td>
              <Step step={step} find={find} />
              <ChangeBar from={step.total - step.change} to={step.total} />
            </td>
            <td class="number">{signed(step.change)}</td>
            <td class="number">{signed(step.total).replace('+', '')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Step({ step, find }: { step: ScoreSteps[number]; find: FindSignal }) {
  const { kind, signal, bound } = step
  const known = signal === null ? undefined : find(signal)
  if (kind === 'signal' && known) return <SignalDetails {...known} />
  return <span class="rule">{rules[kind]?.(bound ?? 0, known?.name ?? signal) ?? kind}</span>
}

type Rule = (bound: number, signal: string | null) => ComponentChildren

const rules: Record<string, Rule> = {
  weak_limit: (bound) => `Limit: weak signals count as at most ${bound} together`,
  habits_limit: (bound) => `Limit: how input comes counts as at most ${bound}`,
  trust_limit: (bound) => `Limit: trust takes away ${bound} at most`,
  least: () => 'Limit: no score is below 0',
  unconfirmed_cap: (bound) => `Cap: nothing of another kind confirms it, so ${bound} at most`,
  no_snapshot_floor: (bound) => `Floor: no readable snapshot, so ${bound} at least`,
  signal_floor: (bound, signal) => `Floor: ${signal}, so ${bound} at least`,
  rounding: () => 'Rounded to a whole number',
}

const signed = (value: number): string =>
  `${value < 0 ? '−' : '+'}${Math.abs(value).toLocaleString('en', { maximumFractionDigits: 2 })}`
