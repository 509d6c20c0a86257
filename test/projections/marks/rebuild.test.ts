import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Applied } from '../../../infra/event-store/applied.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { auditProjection } from '../../../projections/audit/projection.ts'
import { listAudit } from '../../../projections/audit/queries.ts'
import { newestMarks } from '../../../projections/sessions/marks.ts'
import { countRows } from '../../../projections/sessions/person.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import { visitorErased } from '../../support/erased.ts'
import { openTestLogs } from '../../support/logs.ts'
import { noSkips } from '../../support/no-skips.ts'
import {
  ensureTopics,
  openProjectionWorld,
  type ProjectionWorld,
  silent,
} from '../../support/projections.ts'
import { eventMeta, id, marked, scope, scored, unmarked } from './events.ts'

const sessions = Array.from({ length: 40 }, (_, n) => n)
const labels = ['human', 'bot', 'fraud', 'legitimate'] as const

/** Each mark is of a quarter of the sessions; every third one is deleted two marks later. */
const rounds: DomainEvent[][] = Array.from({ length: 24 }, (_, mark) => {
  const isIn = (session: number, one: number) => (session + one) % 4 === 0
  const label = labels[mark % 4] ?? 'bot'
  return [
    ...sessions
      .filter((session) => isIn(session, mark))
      .map((session) => marked(session, mark, label)),
    ...(mark % 3 === 2 ? sessions.filter((session) => isIn(session, mark - 2)) : []).map(
      (session) => unmarked(session, mark - 2),
    ),
    ...sessions
      .filter((session) => (session + mark) % 7 === 0)
      .map((session) => scored(session, mark + 1)),
  ]
})

describe.each(openTestLogs())('marks on $name', (testLog) => {
  let world: ProjectionWorld
  let log: EventLog
  let applied: Applied

  async function append(projections: string[], events: DomainEvent[]): Promise<void> {
    const positions = await world.append(
      log,
      events.map((event) => ({ event, meta: eventMeta(event) })),
    )
    for (const projection of projections)
      await applied.waitFor(projection, positions, { timeoutMs: 20_000 })
  }

  beforeAll(async () => {
    world = await openProjectionWorld()
    log = await testLog.open()
    await ensureTopics(log)
    applied = await world.openApplied()
    for (const projection of [sessionsProjection, auditProjection])
      await world.run(log, projection, { applied })
  })
  afterAll(async () => {
    await world?.close()
    await testLog.cleanup()
  })

  test('a rebuild equals what was applied as it came, also after an erasure', async () => {
    const { pool } = world.database
    await append(
      ['sessions'],
      sessions.map((session) => scored(session)),
    )
    for (const round of rounds) await append(['sessions'], round)
    const shown = await newestMarks(pool, scope, { after: '', limit: 100 })
    expect(shown.map(({ session_id, mark_id, label }) => ({ session_id, mark_id, label }))).toEqual(
      expected(),
    )
    const erased = sessions.filter((n) => n % 5 === 0).map((n) => id('sid', n))
    const about = { organization_id: scope.organizationId }
    await append(['sessions'], [{ type: 'VisitorErased', data: visitorErased(erased, about) }])
    // As one that was decided while the person was erased.
    await append(['sessions'], [marked(0, 100), marked(1, 100)])
    expect(await countRows(pool, erased)).toMatchObject({ session_marks: 0 })
    const left = (await newestMarks(pool, scope, { after: '', limit: 100 })).map(
      ({ session_id }) => session_id,
    )
    expect(left).toEqual(sessions.filter((n) => n % 5 !== 0).map((n) => id('sid', n)))
    await expectEqualRebuild(sessionsProjection)
  }, 60_000)

  test('the audit log has one entry for each request, which names the mark', async () => {
    const { pool } = world.database
    await append(
      ['audit'],
      [marked(1, 200), marked(2, 200), marked(3, 200), unmarked(1, 200), unmarked(2, 200)],
    )
    const { rows } = await listAudit(pool, { limit: 1000 })
    const entries = rows.filter(({ subject_id }) => subject_id === id('mrk', 200))
    expect(entries.map(({ type, actor_id }) => [type, actor_id]).toSorted()).toEqual([
      ['SessionMarked', 'test'],
      ['SessionUnmarked', 'test'],
    ])
    await expectEqualRebuild(auditProjection)
  }, 60_000)

  async function expectEqualRebuild(projection: typeof auditProjection): Promise<void> {
    const { pool } = world.database
    const about = { projection, log, pool, codec: world.codec, logger: silent, skips: noSkips }
    const report = await rebuild(about)
    expect(report.tables.flatMap(({ differences }) => differences)).toEqual([])
    expect(report).toMatchObject({ equal: true, switched: true })
  }
})

/** What is left of all rounds: of each session the last mark that no later round deletes. */
function expected() {
  const marks = new Map<string, { mark_id: string; label: string }[]>()
  for (const { type, data } of rounds.flat()) {
    if (type === 'SessionMarked') {
      const { session_id, mark_id, label } = data
      marks.set(session_id, [...(marks.get(session_id) ?? []), { mark_id, label }])
    }
    if (type === 'SessionUnmarked')
      marks.set(
        data.session_id,
        (marks.get(data.session_id) ?? []).filter(({ mark_id }) => mark_id !== data.mark_id),
      )
  }
  return [...marks]
    .flatMap(([session_id, some]) => some.slice(-1).map((last) => ({ session_id, ...last })))
    .toSorted((a, b) => (a.session_id < b.session_id ? -1 : 1))
}
