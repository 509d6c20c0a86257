import { useState } from 'preact/hooks'
import type { Identification } from '../../../readback/schemas/identification.ts'
import { hrefOf } from '../shared/address.ts'
import { useAnswer } from '../shared/api.ts'
import { inWords, short } from '../shared/format.ts'
import { FactList } from '../shared/parts.tsx'
import { Loaded } from '../shell/states.tsx'

/** Why a session is of its visitor, and who else it could have been of. Asked for when it is opened. */
export function WhyVisitor({ sessionId }: { sessionId: string }) {
  const [asks, setAsks] = useState(false)
  return (
    <details onToggle={({ currentTarget }) => setAsks(currentTarget.open)}>
      <summary>Why this visitor</summary>
      {asks && <Answered sessionId={sessionId} />}
    </details>
  )
}

function Answered({ sessionId }: { sessionId: string }) {
  const answer = useAnswer<{ data: { identification: Identification | null } }>(
    `/v1/sessions/${sessionId}?include=identification`,
  )
  return (
    <Loaded answer={answer}>
      {({ data: { identification } }) =>
        identification ? (
          <Because {...identification} />
        ) : (
          <p class="hint">It is not known any more.</p>
        )
      }
    </Loaded>
  )
}

const reasons: Record<string, string> = {
  kept_id: 'The browser kept an id that it was given before.',
  install_id: 'The app kept an id that it was given before.',
  look: 'The machine looks as before.',
  correction: 'A split or a merger gave the session its visitor.',
  doubt: 'There was a candidate, and nothing was sure, so it is a new visitor.',
  nobody_before: 'Nobody looked like it before, so it is a new visitor.',
}

function Because({ decided_by: by, bits_needed: needed, chosen, next }: Identification) {
  return (
    <>
      <p>{reasons[by] ?? inWords(by)}</p>
      {chosen && (
        <FactList
          facts={{ Needed: needed === null ? null : bits(needed), ...comparison(chosen) }}
        />
      )}
      {next && (
        <>
          <p>
            Next candidate:{' '}
            <a
              class="mono"
              href={hrefOf({ page: 'visitors', id: next.visitor_id })}
              title={next.visitor_id}
            >
              {short(next.visitor_id)}
            </a>
          </p>
          <FactList facts={{ 'Lost because': inWords(next.lost_because), ...comparison(next) }} />
        </>
      )}
    </>
  )
}

const bits = (value: number | null) => (value === null ? 'no bits' : `${value.toFixed(1)} bits`)

function comparison({ bits: evidence, components }: NonNullable<Identification['chosen']>) {
  const names = (list: { name: string }[] = []) => list.map(({ name }) => inWords(name)).join(', ')
  return {
    Evidence: bits(evidence),
    Agreed: names(components?.agreed),
    Changed: names(components?.changed),
    Unknown: names(components?.unknown),
  }
}
