import type { SessionAnomalies } from '../../../readback/schemas/anomalies.ts'
import { valueText } from '../sessions/fields.ts'
import { formatNumber } from '../shared/format.ts'

type Anomaly = SessionAnomalies['anomalies'][number]

const words = {
  attribution: 'from',
  agent_provider: 'from',
  asn: 'from',
  country: 'from',
  signal: 'with',
  page_path: 'on',
} as const

/** Returns the source of an anomaly, or else a signal, and its path, as far as most of its sessions have them. */
function namesOf({ values, sessions }: Anomaly): Anomaly['values'] {
  const common = (name: string) =>
    values.find(({ field, sessions: n }) => field === name && n >= 0.8 * sessions)
  const [source] = ['attribution', 'agent_provider', 'asn', 'country', 'signal'].flatMap(
    (name) => common(name) ?? [],
  )
  return [source, common('page_path')].filter((value) => value !== undefined)
}

const dayMs = 86_400_000

/** Returns a title such as `+250 sessions from Selenium on /signup since 09:24`. */
export function anomalyTitle(anomaly: Anomaly, now: number, timeZone?: string): string {
  const start = Date.parse(anomaly.started_at)
  const time = new Intl.DateTimeFormat('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    ...(now - start > dayMs && { day: 'numeric', month: 'short' }),
    ...(timeZone && { timeZone }),
  }).format(start)
  const names = namesOf(anomaly).map(({ field, value }) => {
    const tool = field === 'attribution' && value.replace(/^tool:/, '').replaceAll('_', ' ')
    const text = tool ? tool.charAt(0).toUpperCase() + tool.slice(1) : valueText(field, value)
    return `${words[field]} ${text}`
  })
  const excess = formatNumber(anomaly.sessions - anomaly.expected)
  return [`+${excess} sessions`, ...names, `since ${time}`].join(' ')
}

export const filtersOfAnomaly = (anomaly: Anomaly): Record<string, string> =>
  Object.fromEntries(namesOf(anomaly).map(({ field, value }) => [field, value]))
