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
// An attack has pauses, and its newest sessions are not scored yet.
const lastingMs = 900_000

/** Returns the end of an anomaly; undefined if it may go on. */
export function endOfAnomaly({ ended_at }: Anomaly, now: number): number | undefined {
  const end = Date.parse(ended_at)
  return now - end < lastingMs ? undefined : end
}

/** Returns a title such as `+250 sessions from Selenium on /signup since 09:24`, or `…, 09:24–09:50` if it ended. */
export function anomalyTitle(anomaly: Anomaly, now: number, timeZone?: string): string {
  const start = Date.parse(anomaly.started_at)
  const end = endOfAnomaly(anomaly, now)
  const format = new Intl.DateTimeFormat('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    ...(now - start > dayMs && { day: 'numeric', month: 'short' }),
    ...(timeZone && { timeZone }),
  })
  const names = namesOf(anomaly).map(({ field, value }) => {
    const tool = field === 'attribution' && value.replace(/^tool:/, '').replaceAll('_', ' ')
    const text = tool ? tool.charAt(0).toUpperCase() + tool.slice(1) : valueText(field, value)
    return `${words[field]} ${text}`
  })
  const excess = formatNumber(anomaly.sessions - anomaly.expected)
  const title = [`+${excess} sessions`, ...names].join(' ')
  return end === undefined
    ? `${title} since ${format.format(start)}`
    : `${title}, ${format.formatRange(start, end)}`
}

export const filtersOfAnomaly = (anomaly: Anomaly): Record<string, string> =>
  Object.fromEntries(namesOf(anomaly).map(({ field, value }) => [field, value]))
