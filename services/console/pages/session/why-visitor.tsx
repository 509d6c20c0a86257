import { useState } from 'preact/hooks'
import type { Identification } from '../../../readback/schemas/identification.ts'
import { hrefOf } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { inWords, shortId } from '../shared/format.ts'
import { FactList } from '../shared/panel.tsx'
import { Loaded } from '../shell/loaded.tsx'

/** The reason why the session was matched to its visitor, and the runner-up. Loaded when opened. */
export function WhyVisitor({ sessionId }: { sessionId: string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Why this visitor</summary>
      {isOpen && <IdentificationLoader sessionId={sessionId} />}
    </details>
  )
}

function IdentificationLoader({ sessionId }: { sessionId: string }) {
  const response = useResponse<{ data: { identification: Identification | null } }>(
    `/v1/sessions/${sessionId}?include=identification`,
  )
  return (
    <Loaded response={response}>
      {({ data: { identification } }) =>
        identification ? (
          <MatchReason {...identification} />
        ) : (
          <p class="hint">No longer available</p>
        )
      }
    </Loaded>
  )
}

const reasons: Record<string, string> = {
  kept_id: 'Id stored in the browser',
  install_id: 'Install id of the app',
  look: 'Device fingerprint',
  correction: 'Correction (a split or a merge)',
  doubt: 'No confident match: new visitor',
  nobody_before: 'No candidate: new visitor',
}

function MatchReason({
  decided_by: decidedBy,
  bits_needed: neededBits,
  chosen,
  next,
}: Identification) {
  return (
    <>
      <p>{reasons[decidedBy] ?? inWords(decidedBy)}</p>
      {chosen && (
        <FactList
          facts={{
            'Required score': neededBits === null ? null : bitsText(neededBits),
            ...matchFacts(chosen),
          }}
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
              {shortId(next.visitor_id)}
            </a>
          </p>
          <FactList
            facts={{ 'Rejected because': inWords(next.lost_because), ...matchFacts(next) }}
          />
        </>
      )}
    </>
  )
}

const bitsText = (value: number | null) => (value === null ? 'no bits' : `${value.toFixed(1)} bits`)

function matchFacts({ bits: evidence, components }: NonNullable<Identification['chosen']>) {
  const names = (list: { name: string }[] = []) => list.map(({ name }) => inWords(name)).join(', ')
  return {
    'Match score': bitsText(evidence),
    Agreed: names(components?.agreed),
    Changed: names(components?.changed),
    Unknown: names(components?.unknown),
  }
}
