import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { FactList } from '../shared/panel.tsx'
import { signalName } from '../shared/signal-names.ts'

export type FindSignal = ReturnType<typeof createSignalFinder>
type SignalFinding = NonNullable<ReturnType<FindSignal>>

/** Returns a function that finds a signal that fired, with its meaning and measurement. */
export function createSignalFinder({ signals_fired: fired, highlights, score }: SessionDetail) {
  const evidence = highlights.flatMap(({ evidence = [] }) => evidence)
  return (slug: string) => {
    const signal = fired.find(({ signal }) => signal === slug)
    const meaning = score?.signals.find(({ signal }) => signal === slug)
    const name = meaning?.name ?? signalName(slug)
    const text = evidence.find(({ signal }) => signal === slug)?.name ?? ''
    return (
      signal && {
        signal: slug,
        name,
        kind: `${signal.strength} ${signal.category} ${signal.role}`,
        points: signal.signal_score,
        // Such as `2 of 12 keys`.
        measured: text.startsWith(`${name}: `) ? text.slice(name.length + 2) : null,
        looksAt: meaning?.looks_at ?? '',
        falsePositives: meaning?.false_positives ?? '',
      }
    )
  }
}

export function SignalDetails({ finding }: { finding: SignalFinding }) {
  const { signal, name, measured } = finding
  return (
    <details class="signal">
      <summary>
        {name}
        {measured && <span class="hint"> {measured}</span>}
      </summary>
      <FactList
        facts={{
          'Looks at': withCode(finding.looksAt),
          'Also happens with': withCode(finding.falsePositives),
          Type: finding.kind,
          Points: finding.points,
          Name: <code>{signal}</code>,
        }}
      />
      <a href={hrefOf({ page: 'sessions', query: new URLSearchParams({ signal, last: '7d' }) })}>
        Sessions with this signal
      </a>
    </details>
  )
}

/** Renders text in backticks as `code`. */
export const withCode = (text: string) =>
  text && (
    <span>
      {text.split('`').map((part, i) => (i % 2 === 1 ? <code key={part}>{part}</code> : part))}
    </span>
  )

export function SignalList({
  title,
  names,
  find,
}: {
  title: string
  names: string[]
  find: FindSignal
}) {
  const findings = names.flatMap((name) => find(name) ?? [])
  if (findings.length === 0) return null
  return (
    <>
      <h3>{title}</h3>
      <div class="signals">
        {findings.map((finding) => (
          <SignalDetails key={finding.signal} finding={finding} />
        ))}
      </div>
    </>
  )
}
