import { useState } from 'preact/hooks'
import type { Identification } from '../../../readback/schemas/identification.ts'
import { useResponse } from '../shared/api.ts'
import { inWords } from '../shared/format.ts'
import { FactList } from '../shared/panel.tsx'
import { ShortId } from '../shared/values.tsx'
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

function MatchReason({ decided_by: decidedBy, bits_needed: needed, chosen, next }: Identification) {
  return (
    <>
      <FactList
        facts={{
          'Decided by': reasons[decidedBy] ?? inWords(decidedBy),
          'Required score': chosen && needed !== null && bitsText(needed),
          ...(chosen && matchFacts(chosen)),
        }}
      />
      {next && (
        <FactList
          facts={{
            'Next candidate': <ShortId id={next.visitor_id} isLink />,
            'Rejected because': inWords(next.lost_because),
            ...matchFacts(next),
          }}
        />
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
