import type { SessionAnomalies } from '../../../readback/schemas/anomalies.ts'
import { useResponse } from '../shared/api.ts'
import { formatNumber, formatPercent } from '../shared/format.ts'
import { Panel } from '../shared/panel.tsx'
import { now, type TimeSpan, timesOf } from '../shared/span.ts'
import { Sparkline } from '../shared/sparkline.tsx'
import { RelativeTime } from '../shared/values.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { anomalyTitle, endOfAnomaly, filtersOfAnomaly } from './anomaly-title.ts'
import { sessionsHref } from './links.ts'

/** Values with a far larger share than in the same hours of the days before. */
export function Anomalies({ span }: { span: TimeSpan }) {
  const path = `/v1/sessions/anomalies?${new URLSearchParams(timesOf(span))}`
  const response = useResponse<{ data: SessionAnomalies }>(path, { pollMs: 60_000 })
  return (
    <Panel title="Anomalies">
      <Loaded response={response} lines={5}>
        {({ data: { anomalies, has_history: hasHistory, is_complete, since, until } }) => (
          <>
            {anomalies.length === 0 ? (
              <p class="hint">
                {hasHistory ? 'No anomalies in this period' : 'Not enough history yet'}
              </p>
            ) : (
              <ol class="anomalies">
                {anomalies.map((anomaly) => (
                  <AnomalyCard key={anomalyTitle(anomaly, now.value)} {...{ anomaly, until }} />
                ))}
              </ol>
            )}
            {!is_complete && (
              <p class="hint">
                Newest sessions only, since <RelativeTime at={since} />
              </p>
            )}
          </>
        )}
      </Loaded>
    </Panel>
  )
}

interface AnomalyCardProps {
  anomaly: SessionAnomalies['anomalies'][number]
  until: string
}

function AnomalyCard({ anomaly, until }: AnomalyCardProps) {
  const { lift, bots, sessions, series } = anomaly
  const since = Math.floor(Date.parse(anomaly.started_at) / 60_000) * 60_000
  const end = endOfAnomaly(anomaly, now.value) ?? Date.parse(until)
  const span = { since, until: end, last: undefined }
  return (
    <li>
      <a href={sessionsHref(span, filtersOfAnomaly(anomaly))}>
        <b>{anomalyTitle(anomaly, now.value)}</b>
        <Sparkline
          values={series.map((bar) => bar.sessions)}
          expected={series.map((bar) => bar.expected)}
        />
        <span class="hint">
          <span class="badge bad">×{formatNumber(lift)}</span> {formatPercent(bots, sessions)} bots
        </span>
      </a>
    </li>
  )
}
