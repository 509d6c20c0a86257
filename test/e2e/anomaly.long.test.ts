import { expect, test } from 'vitest'
import type { SessionAnomalies } from '../../services/readback/schemas/anomalies.ts'
import { eventually } from '../support/eventually.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { repeatSessions, simulate } from '../support/simulated-traffic.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

test('a simulated attack on a busy day is one anomaly with its tool, path and times', async () => {
  const database = await createTestDatabase()
  const tidegate = await startTidegate({ env: { DATABASE_URL: database.url } })
  try {
    await simulate(tidegate, 40, '--seed', 'usual')
    // Two days, every six minutes.
    await repeatSessions(database.pool, { times: 490, everyMs: 360_000 })
    expect((await anomaliesOf(tidegate)).anomalies).toEqual([])
    const begun = Date.now()
    await simulate(tidegate, 250, '--attack', 'credential-stuffing', '--rate', '25')
    const [anomaly] = await eventually(async () => {
      const { sessions, anomalies } = await anomaliesOf(tidegate)
      expect(sessions).toBeGreaterThan(250 + 23 * 400)
      expect(anomalies).toHaveLength(1)
      expect((anomalies[0]?.sessions ?? 0) - (anomalies[0]?.expected ?? 0)).toBeGreaterThan(225)
      return anomalies
    })
    const values = anomaly?.values.map(({ field, value }) => `${field} ${value}`)
    expect(values).toEqual(
      expect.arrayContaining(['attribution tool:playwright', 'page_path /login']),
    )
    expect(Date.parse(anomaly?.started_at ?? '')).toBeGreaterThan(begun - 30 * 60_000)
    expect(Date.parse(anomaly?.ended_at ?? '')).toBeGreaterThan(begun)
  } finally {
    await tidegate.stop()
    await database.drop()
  }
}, 300_000)

async function anomaliesOf({ baseUrl, credentials }: RunningTidegate): Promise<SessionAnomalies> {
  const headers = { Authorization: `Bearer ${credentials.live.secret_key}` }
  const response = await fetch(`${baseUrl}/v1/sessions/anomalies`, { headers })
  expect(response.status).toBe(200)
  return (await response.json()).data
}
