import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { formatNumber, inWords } from '../shared/format.ts'
import { Panel } from '../shared/panel.tsx'
import { TableHead } from '../shared/table-head.tsx'

/** The server stops counting at 100. */
const maxCount = 100

/** Repeat counts at the time of the decision. A count of 1 is the session itself. */
export function RepeatsSection({ repeats }: { repeats: SessionDetail['repeats'] }) {
  const rows = Object.entries(repeats ?? {}).filter(([, { day }]) => day > 1)
  const countText = (value: number) => (value >= maxCount ? `${maxCount}+` : formatNumber(value))
  return (
    <Panel title="Repeats">
      {rows.length === 0 ? (
        <p class="hint">{repeats ? 'No repeats within a day' : 'Not counted'}</p>
      ) : (
        <table>
          <TableHead
            columns={['Count', '5 min', '1 h', '1 day']}
            numericColumns={['5 min', '1 h', '1 day']}
          />
          <tbody>
            {rows.map(([name, { five_minutes, hour, day }]) => (
              <tr key={name}>
                <td>{repeatTitles[name] ?? inWords(name)}</td>
                <td class="number">{countText(five_minutes)}</td>
                <td class="number">{countText(hour)}</td>
                <td class="number">{countText(day)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  )
}

const repeatTitles: Record<string, string> = {
  address_sessions: 'Sessions from this IP address',
  network_sessions: 'Sessions from this network',
  visitor_sessions: 'Sessions of this visitor',
  snapshot_sessions: 'Sessions with the same device data',
  behavior_sessions: 'Sessions with the same input',
  address_visitors: 'Visitors from this IP address',
  visitor_addresses: 'IP addresses of this visitor',
  visitor_users: 'Users of this visitor',
  user_visitors: 'Visitors of this user',
}
