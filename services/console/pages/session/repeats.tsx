import type { SessionDetail } from '../../../readback/schemas/sessions.ts'
import { formatNumber, inWords } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import { Panel } from '../shared/parts.tsx'

/** A count of this is that or more. */
const most = 100

/** What others had in common with the session when it was decided. What only the session itself has is left out. */
export function RepeatsSection({ repeats }: { repeats: SessionDetail['repeats'] }) {
  const rows = Object.entries(repeats ?? {}).filter(([, { day }]) => day > 1)
  const count = (value: number) => (value >= most ? `${most}+` : formatNumber(value))
  return (
    <Panel title="Repeats">
      {rows.length === 0 ? (
        <p class="hint">
          {repeats ? 'Nothing that another session had within a day.' : 'Nothing was counted.'}
        </p>
      ) : (
        <table>
          <Head columns={['Within', '5 min', '1 h', '1 day']} numbers={['5 min', '1 h', '1 day']} />
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
  address_sessions: 'Sessions from its address',
  network_sessions: 'Sessions from its network',
  visitor_sessions: 'Sessions of its visitor',
  snapshot_sessions: 'Sessions with its machine',
  behavior_sessions: 'Sessions with its input',
  address_visitors: 'Visitors at its address',
  visitor_addresses: 'Addresses of its visitor',
  visitor_users: 'Users of its visitor',
  user_visitors: 'Visitors of its user',
}
