import { createSecretKey, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { migrate } from '../../../infra/event-store/builds.ts'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import type { RunningProjection } from '../../../infra/event-store/runner.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import { answerDigest, classDigest, countedDigests } from '../../../projections/answers/digests.ts'
import { learnFrom } from '../../../projections/answers/learned.ts'
import { answersProjection, distinct } from '../../../projections/answers/projection.ts'
import { readAnswers } from '../../../projections/answers/queries.ts'
import { eventTopics, type SessionScored } from '../../../schemas/events.ts'
import { openTestLogs } from '../../support/logs.ts'
import { noSkips } from '../../support/no-skips.ts'
import { openProjectionWorld, type ProjectionWorld, silent } from '../../support/projections.ts'
import { sessionScored } from '../../support/session-scored.ts'

const noBank = { now: 0, keys: [] }
const topic = eventTopics.SessionScored
const engine = 'blink 156'
const handshake = 'f57a46bbacb6_ab7e3b40a677'

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
    evaluated_at: n * 60 * 60 * 1000,
    network: { ...scored.network, ip_address: addressOf(visitor) },
    given_answers: given({ visitor, answer, isConsistent }),
  }
}

const card = 'a card | linux | Chrome | 156'
const question = { canvas_seed: '3.46' }

const key = createSecretKey(randomBytes(32))

function given({ visitor, answer, isConsistent }: Required<Answering>) {
  const counted = {
    organization_id: 'org_1',
    visitorId: `vid_${visitor}`,
    ipAddress: addressOf(visitor),
  }
  const digests = countedDigests(key, counted)
  if (!digests) throw new Error('it has a network')
  return {
    ...question,
    ...digests,
    is_consistent: isConsistent,
    engine: classDigest(engine),
    engine_family: 'blink',
    handshake: classDigest(handshake),
    canvas_class: classDigest(card),
    canvas_answer: answerDigest(answer),
    engine_answers: { 1: answerDigest(answer), 2: answerDigest('the same') },
  }
}

const addressOf = (visitor: number) => `10.${visitor >> 8}.${visitor & 255}.7`

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
    await log.ensureTopics([
      { topic, partitions: 3 },
      { topic: eventTopics.EngineAnswersLearned, partitions: 1 },
    ])
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
      decision(1001 + 2 * n, { visitor: 5000 + (n % 3), answer: 'poison' }),
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
    const given = await readAnswers(pool, { visitors: 20, always: [] })
    const first = given.filter(({ question }) => question === '1')
    const poison = answerDigest('poison')
    expect(new Set(first.map(({ answer }) => answer))).toEqual(
      new Set([poison, answerDigest('right')]),
    )
    expect(distinct(first.find(({ answer }) => answer === poison)?.visitors ?? [])).toBe(3)
    const { organization_id: organizationId } = decision(0)
    const question = { environment: 'live', organizationId, class: engine, question: '1' } as const
    const learned = learnFrom(
      given.filter(({ answer }) => answer !== poison),
      noBank,
    ).right(question)
    expect(['right', 'poison'].filter((answer) => learned?.has(answer))).toEqual(['right'])
    expect(learnFrom(given, noBank).right(question)?.has('poison') ?? false).toBe(false)
    const spoken = learnFrom(given, noBank).right({
      ...question,
      class: handshake,
      question: 'handshake',
    })
    expect(['blink', 'gecko'].filter((family) => spoken?.has(family))).toEqual(['blink'])
    const report = await rebuild({
      projection: answersProjection,
      log,
      pool,
      codec: world.codec,
      logger: silent,
      skips: noSkips,
    })
    expect(report).toMatchObject({ equal: true, records: positions.length })
  })
})
