import type { Verdict } from '../../../../schemas/events.ts'

interface Band {
  verdict: Verdict
  from: number
  to: number
}

/** Scores by verdict, the same for every model. */
const bands: readonly Band[] = [
  { verdict: 'human', from: 0, to: 39 },
  { verdict: 'inconclusive', from: 40, to: 69 },
  { verdict: 'bot', from: 70, to: 100 },
]

/** A score on a scale from 0 to 100, divided by verdict. */
export function ScoreBand({ score }: { score: number }) {
  return (
    <figure class="band">
      <svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
        {bands.map(({ verdict, from }, i) => (
          <rect
            key={verdict}
            class={verdict}
            x={from}
            y="3"
            width={(bands[i + 1]?.from ?? 100) - from}
            height="6"
          />
        ))}
        <line class="mark" x1={score} x2={score} y1="0" y2="12" />
      </svg>
      <figcaption>
        {bands.map(({ verdict, from, to }) => (
          <span key={verdict}>
            {verdict}{' '}
            <span class="number">
              {from}–{to}
            </span>
          </span>
        ))}
      </figcaption>
    </figure>
  )
}

/** A bar from one score to another, with lines at the verdict thresholds. */
export function ChangeBar({ from, to }: { from: number; to: number }) {
  const [low, high] = [from, to]
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
        width={Math.max(0.4, (high ?? 0) - (low ?? 0))}
        height="6"
      />
    </svg>
  )
}
