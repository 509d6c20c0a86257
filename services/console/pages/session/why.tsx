import { hrefOf } from '../shared/address.ts'
import { inWords } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import { Part } from '../shared/parts.tsx'
import type { ApiSession, ApiSignal } from '../shared/types.ts'

/** Which signals fired, those that say most first, with a bar of their points. */
export function Why({ session: { signals_fired: fired } }: { session: ApiSession }) {
  const signals = fired.toSorted((one, other) => Math.abs(other.signal_score) - Math.abs(one.signal_score))
  if (signals.length === 0) return <Part title="Signals">No signal fired.</Part>
  return (
    <Part title="Signals">
      <div class="scroll">
        <table>
          <Head columns={['Signal', 'Kind', 'Points', '']} numbers={['Points']} />
          <tbody>
            {signals.map((one) => (
              <Signal key={one.signal} fired={one} />
            ))}
          </tbody>
        </table>
      </div>
    </Part>
  )
}

function Signal({ fired: { signal, role, category, strength, signal_score: points } }: { fired: ApiSignal }) {
  const sign = role === 'trust' ? '−' : role === 'risk' ? '+' : ''
  return (
    <tr>
      <td>
        <a href={hrefOf({ page: 'sessions', query: new URLSearchParams({ signal }) })}>{inWords(signal)}</a>
      </td>
      <td>
        {strength} {category} {role}
      </td>
      <td class="number">
        {sign}
        {Math.abs(points)}
      </td>
      <td class="bar">
        <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
          <rect class={role} width={Math.min(100, Math.abs(points))} height="8" />
        </svg>
      </td>
    </tr>
  )
}
