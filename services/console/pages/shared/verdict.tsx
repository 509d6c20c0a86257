import type { Verdict } from '../../../../schemas/events.ts'

const paths: Record<Verdict, string> = {
  human:
    'M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zm0 1.8a4.7 4.7 0 1 1 0 9.4 4.7 4.7 0 0 1 0-9.4z',
  inconclusive: 'M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zm0 1.8v9.4a4.7 4.7 0 0 1 0-9.4z',
  bot: 'M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z',
}

interface VerdictBadgeProps {
  verdict: Verdict
  risk_score?: number
}

/** A verdict as icon and word, so that it is readable without color. */
export function VerdictBadge({ verdict, risk_score: score }: VerdictBadgeProps) {
  return (
    <span class={`verdict ${verdict}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d={paths[verdict]} fill-rule="evenodd" />
      </svg>
      {verdict}
      {score !== undefined && <b>{score}</b>}
    </span>
  )
}
