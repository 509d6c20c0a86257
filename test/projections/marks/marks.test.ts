import { expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { listSessions } from '../../../projections/sessions/list-sessions.ts'
import { currentMarks, newestMarks, sessionsToMark } from '../../../projections/sessions/marks.ts'
import { marksOf } from '../../../projections/sessions/person.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import { findSession } from '../../../projections/sessions/queries.ts'
import { recordedSession, useReadModel } from '../read-model.ts'
import { id } from '../world-events.ts'
import { marked, scope, scored, unmarked } from './events.ts'

const model = useReadModel(sessionsProjection, recordedSession)

/** As the detail, the list and the flat row have it, which are the same. */
async function shown(session = 1) {
  const { pool } = model.database
  const detail = await findSession(pool, scope, id('sid', session))
  const { rows } = await listSessions(pool, scope, { limit: 10 })
  const [row] = (await model.rows('sessions')).filter(
    ({ session_id }) => session_id === id('sid', session),
  )
  const listed = rows.find((one) => one.id === id('sid', session))
  expect(listed?.mark).toEqual(detail?.mark)
  const columns = [
    row?.mark_id,
    row?.mark,
    row?.mark_reason,
    row?.marked_at && Number(row.marked_at),
  ]
  const { mark } = detail ?? {}
  expect(columns).toEqual(
    mark ? [mark.id, mark.label, mark.reason, mark.marked_at] : [null, null, null, null],
  )
  return mark
}

test('the newest mark counts, and one that is taken away gives place to the one before', async () => {
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

test('a repeat changes nothing: a mark that was taken away does not come back', async () => {
  const [first, second, gone] = [marked(1, 1), marked(1, 2), unmarked(1, 2)].map(recordedSession)
  if (!first || !second || !gone) throw new Error('no events')
  await model.given(scored(1))
  await model.apply([first, second, gone])
  // As a producer that had no answer appends them again.
  const again = [first, second].map((event) => ({
    ...event,
    position: recordedSession(scored(1)).position,
  }))
  await model.apply(again)
  expect(await shown()).toMatchObject({ id: id('mrk', 1) })
  await model.apply([gone])
  expect(await shown()).toMatchObject({ id: id('mrk', 1) })
})

test('however events are cut into batches, the rows are the same', async () => {
  const story = (one: number, other: number): DomainEvent[] => [
    scored(one),
    marked(one, 1),
    scored(other),
    marked(other, 1),
    scored(one, 1),
    marked(one, 2),
    unmarked(one, 2),
    marked(other, 3),
    scored(other, 1),
    unmarked(one, 1),
    marked(one, 4, 'legitimate'),
  ]
  await model.given(...story(1, 2))
  for (const event of story(3, 4)) await model.given(event)
  expect([await shown(3), await shown(4)]).toEqual([await shown(1), await shown(2)])
  expect((await shown(1))?.label).toBe('legitimate')
  const stored = await marksOf(
    model.database.pool,
    [1, 2, 3, 4].map((n) => id('sid', n)),
  )
  const [one, two, three, four] = [...stored.values()].map((marks) =>
    marks.map(({ mark_id, is_removed }) => [mark_id, is_removed]),
  )
  expect([three, four]).toEqual([one, two])
})

test('it stays with the session when that is decided anew, or is another visitor’s', async () => {
  await model.given(scored(1), marked(1, 1))
  await model.given(scored(1, 1))
  const about = { session_id: id('sid', 1), organization_id: scope.organizationId, confidence: 85 }
  await model.given({
    type: 'VisitorMerged',
    data: {
      ...about,
      environment: 'live',
      event_id: 'evt_merged',
      merged_at: 9,
      visitor_id: id('vid', 9),
      earlier_visitor_id: id('vid', 1),
    },
  })
  expect(await findSession(model.database.pool, scope, id('sid', 1))).toMatchObject({
    visitor: { id: id('vid', 9) },
    decision: { event_id: 'evt_1_1' },
  })
  expect(await shown()).toMatchObject({ id: id('mrk', 1) })
})

test('a mark of a session that is not there, or was erased, leaves nothing', async () => {
  await model.given(scored(1))
  await model.given(marked(2, 1))
  await model.apply([{ ...recordedSession(marked(1, 1)), isErased: true }])
  expect(await model.rows('session_marks')).toEqual([])
  expect(await shown()).toBeNull()
})

test('sessions are named by their ids, a visitor or a user, in their scope alone', async () => {
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
  const { pool } = model.database
  const found = (named: Parameters<typeof sessionsToMark>[2]['named'], limit = 10, where = scope) =>
    sessionsToMark(pool, where, { named, limit })
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
  for (const named of [
    { visitorId: id('vid', 1) },
    { clientUserId: 'Ada' },
    { sessionIds: [id('sid', 1)] },
  ])
    expect(await sessionsToMark(pool, elsewhere, { named, limit: 10 })).toEqual([])
})

test('an export has the newest mark of each session, in pages; a person’s export has all', async () => {
  await model.given(
    ...[1, 2, 3, 4].map((n) => scored(n)),
    marked(1, 1),
    marked(1, 2),
    marked(2, 3),
    marked(3, 4),
  )
  await model.given(unmarked(3, 4))
  const { pool } = model.database
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
  const own = (await marksOf(pool, [id('sid', 1), id('sid', 3)])).values()
  expect(
    [...own].map((marks) => marks.map(({ mark_id, is_removed }) => [mark_id, is_removed])),
  ).toEqual([
    [
      [id('mrk', 1), false],
      [id('mrk', 2), false],
    ],
    [[id('mrk', 4), true]],
  ])
})
