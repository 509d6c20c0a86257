import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { transaction } from '../../../infra/postgres/pool.ts'
import { createScoringTables } from '../../../services/scoring/tables.ts'
import { openVisitorIndex, type Unresolved } from '../../../services/scoring/visitors/index.ts'
import type { Match } from '../../../services/scoring/visitors/match.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  await transaction(database.pool, createScoringTables)
})
afterAll(() => database.drop())

const key = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)

function session(...presented: string[]): Unresolved {
  const keys = { presented: presented.map(key), issued: null, install: null, anchors: null, partial: [] }
  return { organizationId: 'org', environment: 'live', keys, profile: null }
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
    for (const { id, unresolved } of entries) index.add({ ...unresolved, match: matchOf(id), at: 1 })
    await index.save(tx)
  })
}

it('partitions that see the same visitors in other orders, by other keys, do not deadlock', async () => {
  const visitors = Array.from({ length: 300 }, (_, i) => `vid_${i}`)
  for (let round = 0; round < 10; round++) {
    await Promise.all([
      seen(visitors, `one ${round}`),
      seen(visitors.toReversed(), `other ${round}`),
      seen(visitors.toSorted(), `third ${round}`),
    ])
  }
  const { rows } = await database.pool.query('select distinct sessions from scoring.visitors')
  expect(rows).toEqual([{ sessions: 30 }])
})

it('of very many visitors under one key the same few are found every time, in one order', async () => {
  for (let i = 19; i >= 0; i--) {
    await transaction(database.pool, async (tx) => {
      const one = session('common')
      const index = await openVisitorIndex(tx, [one])
      index.add({ ...one, match: matchOf(`vid_common_${String(i).padStart(2, '0')}`), at: 1 })
      await index.save(tx)
    })
  }
  const found = await transaction(database.pool, async (tx) =>
    (await openVisitorIndex(tx, [session('common')])).byKey(key('common')).map(({ id }) => id),
  )
  expect(found).toEqual(Array.from({ length: 10 }, (_, i) => `vid_common_0${i}`))
})
