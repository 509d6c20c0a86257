import type pg from 'pg'
import { expect, test } from 'vitest'
import { rollUpOnce } from '../../projections/sessions/roll-up.ts'
import type { SessionAnomalies } from '../../services/readback/schemas/anomalies.ts'
import { cli } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const hourMs = 3_600_000

test('a simulated attack on a busy day is one anomaly with its tool, path and times', async () => {
  const database = await createTestDatabase()
  const tidegate = await startTidegate({ env: { DATABASE_URL: database.url } })
  try {
    await simulate(tidegate, '--sessions', '40', '--seed', 'usual')
    await repeatSessions(database.pool)
    expect((await anomaliesOf(tidegate)).anomalies).toEqual([])
    const begun = Date.now()
    await simulate(tidegate, '--attack', 'credential-stuffing', '--rate', '25')
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

async function simulate({ dataDir }: RunningTidegate, ...options: string[]): Promise<void> {
  const { code, stderr } = await cli(['simulate', ...options], { DATA_DIR: dataDir })
  expect([code, stderr]).toEqual([0, expect.anything()])
}

async function anomaliesOf({ baseUrl, credentials }: RunningTidegate): Promise<SessionAnomalies> {
  const headers = { Authorization: `Bearer ${credentials.live.secret_key}` }
  const response = await fetch(`${baseUrl}/v1/sessions/anomalies`, { headers })
  expect(response.status).toBe(200)
  return (await response.json()).data
}

/** Copies each session into every six minutes of the two days before, and rolls the hours up. */
async function repeatSessions(pool: pg.Pool): Promise<void> {
  await pool.query(
    `insert into read.sessions select (jsonb_populate_record(s, jsonb_build_object(
       'session_id', left(s.session_id, -3) || lpad(n::text, 3, '0'),
       'event_id', left(s.event_id, -3) || lpad(n::text, 3, '0'),
       'created_at', s.created_at - n * 360000, 'evaluated_at', s.evaluated_at - n * 360000
     ))).* from read.sessions s, generate_series(1, 490) n on conflict do nothing`,
  )
  const now = Date.now()
  while (await rollUpOnce(pool, now - (now % hourMs)));
}
