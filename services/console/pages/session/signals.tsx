import type { ScoreExplanation } from '../../../readback/schemas/score.ts'
import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { hrefOf } from '../shared/address.ts'
import { inWords } from '../shared/format.ts'
import { FactList } from '../shared/parts.tsx'

/** A signal of the session: what it is, what it saw here, and who else has it. */
export interface FiredHere {
  signal: string
  name: string
  kind: string
  points: number
  /** As `2 of 12 keys`. */
  measured: string | null
  looksAt: string
  falsePositives: string
}

export type FindSignal = (signal: string) => FiredHere | undefined

export function signalsOf(
  { signals_fired: fired, highlights }: SessionDetail,
  score: ScoreExplanation,
): FindSignal {
  const shown = highlights.flatMap(({ evidence = [] }) => evidence)
  return (slug) => {
    const one = fired.find(({ signal }) => signal === slug)
    const meaning = score.signals.find(({ signal }) => signal === slug)
    const name = meaning?.name ?? inWords(slug)
    const text = shown.find(({ signal }) => signal === slug)?.name ?? ''
    return (
      one && {
        signal: slug,
        name,
        kind: `${one.strength} ${one.category} ${one.role}`,
        points: one.signal_score,
        measured: text.startsWith(`${name}: `) ? text.slice(name.length + 2) : null,
        looksAt: meaning?.looks_at ?? '',
        falsePositives: meaning?.false_positives ?? '',
      }
    )
  }
}

export function SignalDetails({
  signal,
  name,
  kind,
  points,
  measured,
  looksAt,
  falsePositives,
}: FiredHere) {
  return (
    <details class="signal">
      <summary>
        {name}
        {measured && <span class="hint"> {measured}</span>}
      </summary>
      <FactList
        facts={{
          'Looks at': inCode(looksAt),
          'In this session': measured,
          'Of people': inCode(falsePositives),
          Kind: kind,
          'Points alone': points,
          Name: <code>{signal}</code>,
        }}
      />
      <a href={hrefOf({ page: 'sessions', query: new URLSearchParams({ signal, last: '7d' }) })}>
        Sessions with this signal
      </a>
    </details>
  )
}

/** With `code` where the text has it between backticks. */
const inCode = (text: string) =>
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
  const known = names.flatMap((name) => find(name) ?? [])
  if (known.length === 0) return null
  return (
    <>
      <h3>{title}</h3>
      <div class="signals">
        {known.map((one) => (
          <SignalDetails key={one.signal} {...one} />
        ))}
      </div>
    </>
  )
}
