import { expect, it } from 'vitest'
import { derivedId } from '../../../infra/ids.ts'
import type { EventLog, KeyedRecord } from '../../../infra/log/port.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import { ensureOffset } from '../../../services/scoring/store.ts'
import { createRecovery } from '../../../services/scoring/worker.ts'
import { eventually } from '../../support/eventually.ts'
import { silent } from '../../support/projections.ts'
import { batch, handOff, opened, type TestSession, testSession, visitOf } from './support/events.ts'
import { openScoringDatabase } from './support/scoring.ts'
import { headlessChrome } from './support/snapshots.ts'

const topic = 'tidegate.collect.v1'

const world = await openScoringDatabase(sessionsProjection)

/** Returns two sessions of one browser in different partitions. Either could match the other's visitor. */
async function twins(name = 'twin'): Promise<[TestSession, TestSession]> {
  const { continuityId } = testSession(name)
  const kept = { continuityIds: [continuityId], continuityId }
  const first = testSession(`${name}-0`, kept)
  const home = await world.log.partitionOf(topic, first.id)
  for (let i = 1; ; i++) {
    const second = testSession(`${name}-${i}`, kept)
    if ((await world.log.partitionOf(topic, second.id)) !== home) return [first, second]
  }
}

/** Returns a log whose process crashes after it has appended decisions about the session, before the commit. */
function dyingAfter({ id }: TestSession) {
  let died = false
  const isAbout = (records: KeyedRecord[]) => records.some(({ key }) => key === id)
  const dying: EventLog = {
    ...world.log,
    async append(records) {
      if (isAbout(records) && died) throw new Error('dead')
      const positions = await world.log.append(records)
      if (isAbout(records)) died = true
      if (died && isAbout(records)) throw new Error('died before the commit')
      return positions
    },
  }
  return { dying, died: () => died }
}

/** Returns a log whose consumers get at most `maxRecords` per call. */
const atMost = (maxRecords: number, log: EventLog): EventLog => ({
  ...log,
  consume: (options) => log.consume({ ...options, maxRecords }),
})

const visitorOf = async (decisionId: string) => (await world.decision(decisionId)).visitor?.id
const firstDecision = (session: TestSession) => derivedId('evt', batch(session).data.event_id)

it('keeps the recorded visitor after a crash between append and commit', async () => {
  const [crashed, twin] = await twins()
  const { dying, died } = dyingAfter(crashed)
  const worker = await world.score({ log: dying })
  await world.append(...visitOf(crashed))
  await eventually(() => expect(died()).toBe(true))
  const recorded = await visitorOf(firstDecision(crashed))
  await world.append(...visitOf(twin))
  expect(await visitorOf(firstDecision(twin))).not.toBe(recorded)
  await worker.stop()

  const next = await world.score()
  const request = handOff(crashed)
  await world.append(request)
  expect(await visitorOf(request.data.decision_id)).toBe(recorded)
  const { rows } = await world.pool.query(
    'select count(*)::int as decisions from read.decisions where session_id = $1',
    [crashed.id],
  )
  expect(rows).toEqual([{ decisions: 2 }])
  const place = { topic, partition: await world.log.partitionOf(topic, crashed.id) }
  await eventually(async () => expect(await ensureOffset(world.pool, place)).toBe(4))
  await next.stop()
})

it.each([
  ['before its hand-off, then with it', 1, 1000],
  ['with its hand-off, then before it', 1000, 1],
])('keeps the recorded visitor of a session that is first scored %s', async (name, ...most) => {
  const [crashed, twin] = await twins(name)
  const { dying, died } = dyingAfter(crashed)
  const request = handOff(crashed)
  await world.append(...visitOf(crashed), request)
  const worker = await world.score({ log: atMost(most[0], dying) })
  await eventually(() => expect(died()).toBe(true))
  const recordedId = most[0] === 1 ? firstDecision(crashed) : request.data.decision_id
  const recorded = await visitorOf(recordedId)
  await world.append(...visitOf(twin))
  expect(await visitorOf(firstDecision(twin))).not.toBe(recorded)
  await worker.stop()

  const next = await world.score({ log: atMost(most[1], world.log) })
  expect(await visitorOf(request.data.decision_id)).toBe(recorded)
  const { rows } = await world.pool.query(
    'select event_id, is_provisional from read.sessions where session_id = $1',
    [crashed.id],
  )
  expect(rows).toEqual([{ event_id: request.data.decision_id, is_provisional: false }])
  await next.stop()
})

it('reports each decision once, even if its batch is scored again', async () => {
  const session = testSession('counted', { client: headlessChrome })
  const withoutVisitor = testSession('counted without a visitor')
  const counted: string[] = []
  const worker = await world.score({
    onDecided: ({ verdict, reason }) => {
      counted.push(`${verdict} ${reason}`)
      if (reason !== 'hand_off' || verdict !== 'bot') throw new Error('died before the commit')
    },
  })
  const counts = (...expected: string[]) => eventually(() => expect(counted).toEqual(expected))
  await world.append(...visitOf(session))
  await counts('bot first')
  await world.append(...opened(withoutVisitor), handOff(withoutVisitor))
  await counts('bot first', 'inconclusive hand_off')
  await world.append(handOff(session))
  await counts('bot first', 'inconclusive hand_off', 'bot hand_off')
  await worker.stop()
})

it('keeps a suspect range when a shorter one is added', async () => {
  const unknown = { decisionId: 'evt_unknown', sessionId: 'sid_unknown' }
  let asked = 0
  const waitFor = async () => void asked++
  const { log, pool } = world
  const recovery = createRecovery({ log, pool, applied: { waitFor }, logger: silent })
  recovery.markSuspect(0, 100)
  recovery.markSuspect(0, 5)
  await recovery.findRecorded([{ partition: 0, offset: 50 }], [unknown])
  expect(asked).toBe(1)
  await recovery.findRecorded([{ partition: 0, offset: 100 }], [unknown])
  recovery.markSuspect(0, 5)
  await recovery.findRecorded([{ partition: 0, offset: 50 }], [unknown])
  expect(asked).toBe(1)
})
