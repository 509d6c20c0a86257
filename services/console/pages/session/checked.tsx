import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { inWords } from '../shared/format.ts'
import { FactList, Panel } from '../shared/parts.tsx'

/** What was looked at, and beside it what was not. */
export function Checked({
  session: { evidence, analysis_coverage: coverage },
}: {
  session: SessionDetail
}) {
  const areas = (wanted: boolean) =>
    Object.entries(coverage).flatMap(([name, seen]) => (seen === wanted ? [inWords(name)] : []))
  return (
    <div class="columns">
      <Panel title="What was looked at">
        <FactList
          facts={{
            'Data of': areas(true).join(', '),
            Consulted: evidence.sources.map(inWords).join(', '),
            'Said by the app alone': evidence.claimed.join(', '),
          }}
        />
      </Panel>
      <Panel title="What was not looked at">
        <FactList
          facts={{
            'No data of': areas(false).join(', '),
            'Nothing consulted for': evidence.unchecked.map(inWords).join(', '),
            'Not sent': evidence.missing.join(', '),
            Withheld: evidence.withheld
              .map(({ group, reason }) => `${group} (${inWords(reason)})`)
              .join(', '),
            'No browser has': evidence.impossible.join(', '),
          }}
        />
      </Panel>
    </div>
  )
}
