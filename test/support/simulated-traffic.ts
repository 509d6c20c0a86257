import type pg from 'pg'
import { expect } from 'vitest'
import { rollUpOnce } from '../../projections/sessions/roll-up.ts'
import { cli } from './cli.ts'
import { eventually } from './eventually.ts'
import type { RunningTidegate } from './tidegate.ts'

/** Runs `tidegate simulate --sessions count` against the server, and waits until the sessions are counted. */
export async function simulate(
  { baseUrl, credentials, dataDir }: RunningTidegate,
  count: number,
  ...options: string[]
): Promise<void> {
  const since = new Date().toISOString()
  const command = ['simulate', '--sessions', `${count}`, ...options]
  const { code, stderr } = await cli(command, { DATA_DIR: dataDir })
  expect([code, stderr]).toEqual([0, expect.anything()])
  await eventually(async () => {
    const headers = { Authorization: `Bearer ${credentials.live.secret_key}` }
    const response = await fetch(`${baseUrl}/v1/sessions/aggregates?since=${since}`, { headers })
    expect(await response.json()).toMatchObject({ data: { sessions: count } })
  })
}

/** Copies each session into the time before, at most 999 times, as usual traffic, and rolls the hours up. */
export async function repeatSessions(
  pool: pg.Pool,
  { times, everyMs }: { times: number; everyMs: number },
): Promise<void> {
  await pool.query(
    `insert into read.sessions select (jsonb_populate_record(s, jsonb_build_object(
       'session_id', left(s.session_id, -3) || lpad(n::text, 3, '0'),
       'event_id', left(s.event_id, -3) || lpad(n::text, 3, '0'),
       'created_at', s.created_at - n * $2::bigint, 'evaluated_at', s.evaluated_at - n * $2::bigint
     ))).* from read.sessions s, generate_series(1, $1::int) n on conflict do nothing`,
    [times, everyMs],
  )
  const now = Date.now()
  while (await rollUpOnce(pool, now - (now % 3_600_000)));
}
