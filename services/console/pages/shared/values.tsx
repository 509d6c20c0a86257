import type { Verdict } from '../../../../schemas/events.ts'
import { hrefOf } from './address.ts'
import { CopyButton } from './copy.tsx'
import { formatAgo, formatDateTime, shortId } from './format.ts'
import { now } from './span.ts'

/** A relative time with the exact time as its tooltip. */
export function RelativeTime({ at }: { at: string }) {
  return (
    <time dateTime={at} title={formatDateTime(at)}>
      {formatAgo(at, Math.min(Date.now(), now.value))}
    </time>
  )
}

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

/** A shortened id with a button that copies the whole id. */
export function ShortId({ id, isLink = false }: { id: string; isLink?: boolean }) {
  return (
    <span class="short-id">
      {isLink ? (
        <IdLink id={id} />
      ) : (
        <span class="mono" title={id}>
          {shortId(id)}
        </span>
      )}{' '}
      <CopyButton class="plain hint" text={id} title={`Copy ${id}`} />
    </span>
  )
}

/** A shortened id of a session or visitor that links to its page. */
export function IdLink({ id }: { id: string }) {
  const page = id.startsWith('sid_') ? 'sessions' : 'visitors'
  return (
    <a class="mono" href={hrefOf({ page, id })} title={id}>
      {shortId(id)}
    </a>
  )
}
