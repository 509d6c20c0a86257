import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { formatNumber, inWords } from '../shared/format.ts'
import { TableHead } from '../shared/head.tsx'
import { Panel } from '../shared/parts.tsx'

/** Counts stop here: 100 means 100 or more. */
const maxCount = 100

/** Repeat counts at the time of the decision, without those of the session alone. */
export function RepeatsSection({ repeats }: { repeats: SessionDetail['repeats'] }) {
  const rows = Object.entries(repeats ?? {}).filter(([, { day }]) => day > 1)
  const count = (value: number) => (value >= maxCount ? `${maxCount}+` : formatNumber(value))
  return (
    <Panel title="Repeats">
      {rows.length === 0 ? (
        <p class="hint">{repeats ? 'No repeats within a day' : 'Not counted'}</p>
      ) : (
        <table>
          <TableHead
            columns={['Count', '5 min', '1 h', '1 day']}
            numbers={['5 min', '1 h', '1 day']}
          />
          <tbody>
            {rows.map(([name, { five_minutes, hour, day }]) => (
              <tr key={name}>
                <td>{repeatTitles[name] ?? inWords(name)}</td>
                <td class="number">{count(five_minutes)}</td>
                <td class="number">{count(hour)}</td>
                <td class="number">{count(day)}</td>
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
