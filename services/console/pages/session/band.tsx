import type { Verdict } from '../../../../schemas/events.ts'
import { VerdictBadge } from '../shared/verdict.tsx'

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
export function ScoreScale() {
  return (
    <div class="scale">
      {bands.map(({ verdict, from, to }) => (
        <span key={verdict} class={verdict}>
          {verdict} {from}–{to}
        </span>
      ))}
    </div>
  )
}

/** A bar from one score to another, with lines at the verdict thresholds. */
export function ChangeBar({ from, to }: { from: number; to: number }) {
  const [low = 0, high = 0] = [from, to]
    .map((score) => Math.min(100, Math.max(0, score)))
    .toSorted((a, b) => a - b)
  return (
    <svg class="change" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      {bands.slice(1).map(({ from: threshold }) => (
        <line key={threshold} x1={threshold} x2={threshold} y1="0" y2="8" />
      ))}
      <rect
        class={to < from ? 'less' : 'more'}
        x={low}
        y="1"
        width={Math.max(0.4, high - low)}
        height="6"
      />
    </svg>
  )
}
