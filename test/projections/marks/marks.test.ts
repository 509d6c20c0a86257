import { expect, test } from 'vitest'
import { listSessions } from '../../../projections/sessions/list-sessions.ts'
import { currentMarks, newestMarks, sessionsToMark } from '../../../projections/sessions/marks.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import { findSession } from '../../../projections/sessions/queries.ts'
import { findMarksOf } from '../../../projections/sessions/selected-sessions.ts'
import { recordedSession, useReadModel } from '../read-model.ts'
import { id } from '../world-events.ts'
import { marked, scope, scored, unmarked } from './events.ts'

const model = await useReadModel(sessionsProjection, recordedSession)

/** Returns the session's mark, and checks that detail, list and flat row agree. */
async function shown(n = 1) {
  const { pool } = model
  const session = id('sid', n)
  const mark = (await findSession(pool, scope, session))?.mark
  const listed = (await listSessions(pool, scope, { limit: 10 })).rows
  expect(listed.find((one) => one.id === session)?.mark).toEqual(mark)
  const { rows } = await pool.query(
    `select mark_id as id, mark as label, mark_reason as reason, marked_at::float8 as marked_at
     from read.sessions where session_id = $1`,
    [session],
  )
  expect(rows).toEqual([mark ?? { id: null, label: null, reason: null, marked_at: null }])
  return mark
}

test('the newest mark applies, and removing it restores the previous one', async () => {
  await model.given(scored(1), scored(2))
  expect(await shown()).toBeNull()
  await model.given(marked(1, 1), marked(1, 2, 'human'))
  expect(await shown()).toEqual({ id: id('mrk', 2), label: 'human', reason: null, marked_at: 2002 })
  await model.given(marked(1, 3, 'fraud'))
  await model.given(unmarked(1, 2))
  expect(await shown()).toMatchObject({ id: id('mrk', 3), label: 'fraud' })
  await model.given(unmarked(1, 3))
  expect(await shown()).toEqual({
    id: id('mrk', 1),
    label: 'bot',
    reason: 'reason_1',
    marked_at: 2001,
  })
  await model.given(unmarked(1, 1))
  expect(await shown()).toBeNull()
  expect(await shown(2)).toBeNull()
})

test('a repeated event changes nothing: a removed mark is not restored', async () => {
  const made = [marked(1, 1), marked(1, 2)]
  const gone = recordedSession(unmarked(1, 2))
  await model.given(scored(1), ...made)
  await model.apply([gone])
  // As if a producer got no response and appended them again.
  await model.given(...made)
  expect(await shown()).toMatchObject({ id: id('mrk', 1) })
  await model.apply([gone])
  expect(await shown()).toMatchObject({ id: id('mrk', 1) })
})

test('a session keeps its mark after a new decision or a move to another visitor', async () => {
  await model.given(scored(1), marked(1, 1))
  const data = {
    session_id: id('sid', 1),
    organization_id: scope.organizationId,
    environment: scope.environment,
    event_id: 'evt_merged',
    confidence: 85,
    merged_at: 9,
    visitor_id: id('vid', 9),
    earlier_visitor_id: id('vid', 1),
  }
  await model.given(scored(1, 1), { type: 'VisitorMerged', data })
  const session = await findSession(model.pool, scope, id('sid', 1))
  expect(session).toMatchObject({
    visitor: { id: id('vid', 9) },
    decision: { event_id: 'evt_1_1' },
  })
  expect(await shown()).toMatchObject({ id: id('mrk', 1) })
})

test('a mark of a missing or erased session is not stored', async () => {
  await model.given(scored(1))
  await model.given(marked(2, 1))
  await model.apply([{ ...recordedSession(marked(1, 1)), isErased: true }])
  expect(await model.rows('session_marks')).toEqual([])
  expect(await shown()).toBeNull()
})

test('sessions to mark are selected by id, visitor or user, only within the scope', async () => {
  await model.given(scored(1), scored(2), scored(3))
  const user = {
    session_id: id('sid', 3),
    organization_id: scope.organizationId,
    event_id: 'evt_user',
  }
  await model.given({
    type: 'ClientUserAttached',
    data: { ...user, environment: 'live', client_user_id: 'Ada', attached_at: 1 },
  })
  const { pool } = model
  const found = (
    target: Parameters<typeof sessionsToMark>[2]['target'],
    limit = 10,
    where = scope,
  ) => sessionsToMark(pool, where, { target, limit })
  const [one, two, three] = [1, 2, 3].map((n) => id('sid', n))
  expect(await found({ sessionIds: [id('sid', 9), id('sid', 2), id('sid', 1)] })).toEqual([
    one,
    two,
  ])
  expect(await found({ visitorId: id('vid', 1) })).toEqual([one, two, three])
  expect(await found({ visitorId: id('vid', 1) }, 2)).toEqual([one, two])
  expect(await found({ clientUserId: 'Ada' })).toEqual([three])
  expect(await found({ clientUserId: 'ada' })).toEqual([])
  const elsewhere = { ...scope, organizationId: id('org', 2) }
  for (const target of [
    { visitorId: id('vid', 1) },
    { clientUserId: 'Ada' },
    { sessionIds: [id('sid', 1)] },
  ])
    expect(await sessionsToMark(pool, elsewhere, { target, limit: 10 })).toEqual([])
})

test('an export pages through the newest mark of each session; the export of a person has all marks', async () => {
  await model.given(
    ...[1, 2, 3, 4].map((n) => scored(n)),
    marked(1, 1),
    marked(1, 2),
    marked(2, 3),
    marked(3, 4),
  )
  await model.given(unmarked(3, 4))
  const { pool } = model
  const page = async (after: string, limit: number) =>
    (await newestMarks(pool, scope, { after, limit })).map(({ session_id, mark_id }) => [
      session_id,
      mark_id,
    ])
  const rows = [
    [id('sid', 1), id('mrk', 2)],
    [id('sid', 2), id('mrk', 3)],
  ]
  expect(await page('', 10)).toEqual(rows)
  expect([await page('', 1), await page(id('sid', 1), 1)]).toEqual(rows.map((row) => [row]))
  const current = await currentMarks(
    pool,
    scope,
    [1, 3, 9].map((n) => id('sid', n)),
  )
  expect([...current].map(([session, mark]) => [session, mark?.id])).toEqual([
    [id('sid', 1), id('mrk', 2)],
    [id('sid', 3), undefined],
  ])
  const own = await findMarksOf(pool, [id('sid', 1), id('sid', 3)])
  const marks = [...own.values()].flat().map(({ mark_id, is_removed }) => [mark_id, is_removed])
  expect(marks).toEqual([
    [id('mrk', 1), false],
    [id('mrk', 2), false],
    [id('mrk', 4), true],
  ])
})
