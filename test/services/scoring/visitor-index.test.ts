import { createHash } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { runTogether } from '../../../infra/postgres/arrays.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { openVisitorIndex, type UnlinkedSession } from '../../../services/scoring/visitors/index.ts'
import type { Match } from '../../../services/scoring/visitors/match.ts'
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

/** One transaction that resolves a session to each visitor, in the order given, under keys of its own. */
function seen(visitors: string[], by: string): Promise<void> {
  const entries = visitors.map((id) => ({ id, unresolved: session(`${by} ${id}`) }))
  return transaction(database.pool, async (tx) => {
    const index = await openVisitorIndex(
      tx,
      entries.map(({ unresolved }) => unresolved),
    )
    for (const { id, unresolved } of entries)
      index.add({ ...unresolved, match: matchOf(id), at: 1, isNewStorage: true })
    await runTogether(tx, index.save())
  })
}

/** Resolves when so many transactions of this database wait for a lock. */
const waiting = (count: number) =>
  eventually(async () => {
    const { rows } = await database.pool.query(
      `select count(*)::int as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`,
    )
    expect(rows).toEqual([{ count }])
  })

it('partitions that see the same visitors in other orders, by other keys, do not deadlock', async () => {
  await seen(['vid_1', 'vid_2', 'vid_3'], 'first')
  const { partitions } = await transaction(database.pool, async (tx) => {
    // Holds up the first in the middle of its rows.
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

it('of very many visitors under one key the same few are found every time, in one order', async () => {
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
      await runTogether(tx, index.save())
    })
  }
  const found = await transaction(database.pool, async (tx) =>
    (await openVisitorIndex(tx, [session('common')])).byKey(key('common')).map(({ id }) => id),
  )
  expect(found).toEqual(Array.from({ length: 10 }, (_, i) => `vid_common_0${i}`))
})
