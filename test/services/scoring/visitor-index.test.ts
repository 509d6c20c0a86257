import { createHash } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { runAsOneStatement } from '../../../infra/postgres/arrays.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import type { Match } from '../../../services/scoring/visitors/match.ts'
import {
  openVisitorIndex,
  type UnlinkedSession,
} from '../../../services/scoring/visitors/visitor-index.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestDatabase } from '../../support/postgres.ts'

const database = await createTestDatabase()
afterAll(() => database.drop())

const key = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)

function session(...presented: string[]): UnlinkedSession {
  const keys = { presented: presented.map(key), issued: null, install: null, matchKeys: [] }
  return {
    sessionId: presented.join(),
    organizationId: 'org',
    environment: 'live',
    keys,
    profile: null,
  }
}

const matchOf = (id: string): Match => ({
  visitor: undefined,
  id,
  method: 'new',
  basis: null,
  confidence: 50,
})

/** Links a session to each visitor, in this order and with different keys, in one transaction. */
function seen(visitors: string[], by: string): Promise<void> {
  const entries = visitors.map((id) => ({ id, unresolved: session(`${by} ${id}`) }))
  return transaction(database.pool, async (tx) => {
    const index = await openVisitorIndex(
      tx,
      entries.map(({ unresolved }) => unresolved),
    )
    for (const { id, unresolved } of entries)
      index.add({ ...unresolved, match: matchOf(id), at: 1, isNewStorage: true })
    await runAsOneStatement(tx, index.pendingWrites())
  })
}

/** Resolves when this many transactions wait for a lock. */
const waiting = (count: number) =>
  eventually(async () => {
    const { rows } = await database.pool.query(
      `select count(*)::int as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`,
    )
    expect(rows).toEqual([{ count }])
  })

it('concurrent partitions with the same visitors in different orders do not deadlock', async () => {
  await seen(['vid_1', 'vid_2', 'vid_3'], 'first')
  const { partitions } = await transaction(database.pool, async (tx) => {
    // Blocks the first transaction in the middle of its rows.
    await tx.query("select 1 from scoring.visitors where visitor_id = 'vid_2' for update")
    const one = seen(['vid_1', 'vid_2', 'vid_3'], 'one')
    await waiting(1)
    const other = seen(['vid_3', 'vid_1'], 'other')
    await waiting(2)
    return { partitions: [one, other] }
  })
  await Promise.all(partitions)
  const { rows } = await database.pool.query(
    'select sessions from scoring.visitors order by visitor_id',
  )
  expect(rows.map(({ sessions }) => sessions)).toEqual([3, 2, 3])
})

it('finds the same ten of many visitors with one key, in the same order', async () => {
  for (let i = 19; i >= 0; i--) {
    await transaction(database.pool, async (tx) => {
      const one = session('common')
      const index = await openVisitorIndex(tx, [one])
      index.add({
        ...one,
        match: matchOf(`vid_common_${String(i).padStart(2, '0')}`),
        at: 1,
        isNewStorage: true,
      })
      await runAsOneStatement(tx, index.pendingWrites())
    })
  }
  const found = await transaction(database.pool, async (tx) =>
    (await openVisitorIndex(tx, [session('common')])).byKey(key('common')).map(({ id }) => id),
  )
  expect(found).toEqual(Array.from({ length: 10 }, (_, i) => `vid_common_0${i}`))
})
