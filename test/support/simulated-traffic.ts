import type pg from 'pg'
import { expect } from 'vitest'
import { rollUpOnce } from '../../projections/sessions/roll-up.ts'
import { cli } from './cli.ts'
import type { RunningTidegate } from './tidegate.ts'

/** Runs `tidegate simulate` against the server. */
export async function simulate({ dataDir }: RunningTidegate, ...options: string[]): Promise<void> {
  const { code, stderr } = await cli(['simulate', ...options], { DATA_DIR: dataDir })
  expect([code, stderr]).toEqual([0, expect.anything()])
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
