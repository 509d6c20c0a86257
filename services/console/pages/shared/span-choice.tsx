import { goTo, hrefWith } from './address.ts'
import { CopyLink } from './copy-link.tsx'
import { usePageKeys } from './keys.ts'
import { type Length, now, stepped, type TimeSpan, timeParameters } from './span.ts'
import { SpanFields } from './span-fields.tsx'

const titles: Record<Length, string> = {
  '1h': 'last hour',
  '24h': 'last 24 hours',
  '7d': 'last 7 days',
  '30d': 'last 30 days',
}

/** The usual lengths of time, any time by two fields, and steps. A relative time stays relative in the address. */
export function SpanChoice({ span }: { span: TimeSpan }) {
  const hrefOfStep = (step: 'earlier' | 'later') => hrefWith(timeParameters(stepped(span, step, now.value)))
  usePageKeys(
    ({ key }) => {
      if (key === '[') goTo(hrefOfStep('earlier'))
      if (key === ']') goTo(hrefOfStep('later'))
    },
    [span.since, span.until],
  )
  return (
    <nav class="spans" aria-label="Time">
      {Object.entries(titles).map(([length, title]) => (
        <a
          key={length}
          href={hrefWith({ last: length, since: null, until: null })}
          aria-current={span.last === length ? 'true' : undefined}
        >
          {title}
        </a>
      ))}
      <a href={hrefOfStep('earlier')}>earlier</a>
      {!span.last && <a href={hrefOfStep('later')}>later</a>}
      <SpanFields key={span.last ?? `${span.since} ${span.until}`} span={span} />
      {span.last && <CopyLink href={() => hrefWith(timeParameters({ ...span, last: undefined }))} />}
    </nav>
  )
}
