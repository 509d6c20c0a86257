import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { migrate } from '../../../infra/event-store/builds.ts'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import type { RunningProjection } from '../../../infra/event-store/runner.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import { answersProjection } from '../../../projections/answers/projection.ts'
import { readAnswers } from '../../../projections/answers/queries.ts'
import { eventTopics, type SessionScored } from '../../../schemas/events.ts'
import { learnFrom } from '../../../services/scoring/learned.ts'
import { openTestLogs } from '../../support/logs.ts'
import { noSkips } from '../../support/no-skips.ts'
import { openProjectionWorld, type ProjectionWorld, silent } from '../../support/projections.ts'
import { sessionScored } from '../../support/session-scored.ts'

const topic = eventTopics.SessionScored
const engine = 'blink 156'

interface Answering {
  visitor?: number
  answer?: string
  isConsistent?: boolean
}

/** Session `n`, of its own visitor and network unless told otherwise. */
function decision(
  n: number,
  { visitor = n, answer = 'right', isConsistent = true }: Answering = {},
): SessionScored {
  const scored = sessionScored()
  if (!scored.visitor) throw new Error('the example has a visitor')
  return {
    ...scored,
    event_id: `evt_${n}`,
    session_id: `sid_${n}`,
    visitor: { ...scored.visitor, id: `vid_${visitor}` },
    network: { ...scored.network, ip_address: `10.${visitor >> 8}.${visitor & 255}.7` },
    challenge_answers: {
      document_id_hash: String(n),
      engine,
      canvas_class: 'a card | linux | Chrome | 156',
      canvas_seed: '3.46',
      canvas_answer: answer,
      engine_answers: { 1: answer, 2: 'the same' },
      is_consistent: isConsistent,
      network_digest: null,
    },
  }
}

describe.each(openTestLogs())('answers on $name', (testLog) => {
  let world: ProjectionWorld
  let log: EventLog
  let applied: Applied
  let running: RunningProjection

  async function append(events: SessionScored[]): Promise<Position[]> {
    const about = { time: 1, organizationId: null, environment: 'live' as const }
    return world.append(
      log,
      events.map((data) => ({
        event: { type: 'SessionScored' as const, data },
        meta: { ...about, eventId: data.event_id },
      })),
    )
  }

  beforeAll(async () => {
    world = await openProjectionWorld()
    await migrate(world.database.pool, [answersProjection])
    log = await testLog.open()
    await log.ensureTopics([{ topic, partitions: 3 }])
    applied = await world.openApplied()
    running = await world.run(log, answersProjection, { applied })
  })
  afterAll(async () => {
    await running?.stop()
    await world?.close()
    await testLog.cleanup()
  })

  test('are learned of many, and of few who repeat themselves nothing; a rebuild is equal', async () => {
    const honest = Array.from({ length: 120 }, (_, n) => decision(n))
    const few = Array.from({ length: 60 }, (_, n) =>
      decision(1000 + n, { visitor: 5000 + (n % 3), answer: 'poison' }),
    )
    const doubted = Array.from({ length: 60 }, (_, n) =>
      decision(2000 + n, { answer: 'forged', isConsistent: false }),
    )
    const positions: Position[] = []
    const all = [...honest, ...few, ...doubted]
    for (let from = 0; from < all.length; from += 20)
      positions.push(...(await append(all.slice(from, from + 20))))
    await applied.waitFor('answers', positions, { timeoutMs: 20_000 })
    const { pool } = world.database
    const given = await readAnswers(pool, 20)
    const first = given.filter(({ asked }) => asked === '1')
    expect(first.map(({ answer }) => answer).sort()).toEqual(['poison', 'right'])
    expect(first.find(({ answer }) => answer === 'poison')?.visitors).toHaveLength(3)
    const learned = learnFrom(given.filter(({ answer }) => answer !== 'poison'))
    const asked = { environment: 'live', class: engine, asked: '1' } as const
    expect(learned(asked)).toEqual(new Set(['right']))
    expect(learnFrom(given)(asked)?.has('poison') ?? false).toBe(false)
    const report = await rebuild({
      projection: answersProjection,
      log,
      pool,
      codec: world.codec,
      logger: silent,
      skips: noSkips,
    })
    expect(report).toMatchObject({ equal: true, events: positions.length })
  })
})
