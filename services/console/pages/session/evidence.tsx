import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { inWords } from '../shared/format.ts'
import { FactList, Panel } from '../shared/panel.tsx'

export function EvidenceSection({
  session: { evidence, analysis_coverage: coverage },
}: {
  session: SessionDetail
}) {
  const areas = (isCovered: boolean) =>
    Object.entries(coverage).flatMap(([name, covered]) =>
      covered === isCovered ? [inWords(name)] : [],
    )
  return (
    <div class="columns">
      <Panel title="Evidence">
        <FactList
          facts={{
            'Data received': areas(true).join(', '),
            Sources: evidence.sources.map(inWords).join(', '),
            'Reported by the app only': evidence.claimed.join(', '),
          }}
        />
      </Panel>
      <Panel title="Missing evidence">
        <FactList
          facts={{
            'No data': areas(false).join(', '),
            'Not checked': evidence.unchecked.map(inWords).join(', '),
            'Not sent': evidence.missing.join(', '),
            Withheld: evidence.withheld
              .map(({ group, reason }) => `${group} (${inWords(reason)})`)
              .join(', '),
            'Impossible in a browser': evidence.impossible.join(', '),
          }}
        />
      </Panel>
    </div>
  )
}
