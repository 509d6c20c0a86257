import type { Tx } from '../../infra/postgres/pool.ts'
import type { SessionState } from './session-state.ts'

export interface Place {
  topic: string
  partition: number
}

/** The next offset to score, its row locked so that no other process scores the partition at the same time. */
export async function lockOffset(tx: Tx, { topic, partition }: Place): Promise<number> {
  const { rows } = await tx.query<{ next_offset: string }>({
    name: 'scoring-lock-offset',
    text: `insert into scoring.offsets (topic, partition, next_offset) values ($1, $2, 0)
           on conflict (topic, partition) do update set next_offset = offsets.next_offset
           returning next_offset`,
    values: [topic, partition],
  })
  return Number(rows[0]?.next_offset ?? 0)
}

export async function readOffset(db: Pick<Tx, 'query'>, { topic, partition }: Place): Promise<number> {
  const { rows } = await db.query<{ next_offset: string }>(
    'select next_offset from scoring.offsets where topic = $1 and partition = $2',
    [topic, partition],
  )
  return Number(rows[0]?.next_offset ?? 0)
}

export async function saveOffset(tx: Tx, { topic, partition }: Place, next: number): Promise<void> {
  await tx.query({
    name: 'scoring-save-offset',
    text: 'update scoring.offsets set next_offset = $3 where topic = $1 and partition = $2',
    values: [topic, partition, next],
  })
}

export async function loadStates(tx: Tx, sessionIds: string[]): Promise<Map<string, SessionState>> {
  const { rows } = await tx.query<{ state: string }>({
    name: 'scoring-load-states',
    text: 'select state from scoring.sessions where session_id = any($1)',
    values: [sessionIds],
  })
  const states = rows.map(({ state }): SessionState => JSON.parse(state))
  return new Map(states.map((state) => [state.session_id, state]))
}

export async function saveStates(tx: Tx, states: SessionState[]): Promise<void> {
  if (states.length === 0) return
  await tx.query({
    name: 'scoring-save-states',
    text: `insert into scoring.sessions
        (session_id, organization_id, environment, opened_at, last_activity_at, final_at, state)
      select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[])
      on conflict (session_id) do update set
        last_activity_at = excluded.last_activity_at, final_at = excluded.final_at, state = excluded.state`,
    values: [
      states.map((state) => state.session_id),
      states.map((state) => state.organization_id),
      states.map((state) => state.environment),
      states.map((state) => state.created_at),
      states.map((state) => state.last_activity_at),
      states.map((state) => state.final_at),
      states.map((state) => JSON.stringify(state)),
    ],
  })
}
