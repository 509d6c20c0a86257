import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { derivedId } from '../../../infra/ids.ts'
import { noNetwork } from '../../../infra/ip/network.ts'
import type { EventLog, KeyedRecord } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import { findDecisions } from '../../../projections/sessions/queries.ts'
import type { CountDecision } from '../../../services/scoring/metrics.ts'
import type { SessionEvent } from '../../../services/scoring/session/state.ts'
import { readOffset } from '../../../services/scoring/store.ts'
import { createRecovery, runScoring } from '../../../services/scoring/worker.ts'
import { eventually } from '../../support/eventually.ts'
import { createMemoryDataKeys } from '../../support/memory-data-keys.ts'
import { noSkips } from '../../support/no-skips.ts'
import { openProjectionWorld, type ProjectionWorld, silent } from '../../support/projections.ts'
import {
  batch,
  handOff,
  metaOf,
  opened,
  scoringTopics,
  startedAt,
  type TestSession,
  testSession,
} from './support/events.ts'
import { headlessChrome } from './support/snapshots.ts'
import { taught } from './support/taught.ts'

const topic = 'tidegate.collect.v1'
let world: ProjectionWorld
let log: EventLog
let applied: Applied

beforeAll(async () => {
  world = await openProjectionWorld()
  const { pool, url } = world.database
  log = await openPostgresLog({ pool, url, logger: silent })
  await log.ensureTopics(scoringTopics)
  applied = await world.openApplied()
  await world.run(log, sessionsProjection, { applied })
})
afterAll(async () => {
  await log.close()
  await world.close()
})

function score(over: EventLog, onDecided?: CountDecision) {
  const { codec, database } = world
  return runScoring({
    learned: taught,
    log: over,
    pool: database.pool,
    codec,
    dataKeys: createMemoryDataKeys(),
    clock: () => startedAt,
    network: noNetwork,
    applied,
    logger: silent,
    skips: noSkips,
    onDecided,
  })
}

function append(...events: SessionEvent[]) {
  return log.append(events.map((event) => world.codec.toRecord(event, metaOf(event))))
}

/** Two sessions of one machine, so that either could become the visitor of the other, in different partitions. */
async function twins(): Promise<[TestSession, TestSession]> {
  const first = testSession('twin-0')
  const home = await log.partitionOf(topic, first.id)
  for (let i = 1; ; i++) {
    const second = testSession(`twin-${i}`)
    if ((await log.partitionOf(topic, second.id)) !== home) return [first, second]
  }
}

/** A log whose process dies after it appended decisions of the session, before it can commit. */
function dyingAfter({ id }: TestSession) {
  let died = false
  const isAbout = (records: KeyedRecord[]) => records.some(({ key }) => key === id)
  const dying: EventLog = {
    ...log,
    async append(records) {
      if (isAbout(records) && died) throw new Error('dead')
      const positions = await log.append(records)
      if (isAbout(records)) died = true
      if (died && isAbout(records)) throw new Error('died before the commit')
      return positions
    },
  }
  return { dying, died: () => died }
}

/** The visitor of a decision that is readable. */
async function visitorOf(decisionId: string) {
  const [decision] = await findDecisions(world.database.pool, [decisionId])
  if (!decision?.visitor) throw new Error('not decided yet')
  return decision.visitor
}

it('after a crash between append and commit, keeps the visitor that was recorded', async () => {
  const [crashed, twin] = await twins()
  const { dying, died } = dyingAfter(crashed)
  const worker = await score(dying)
  await append(...opened(crashed), batch(crashed))
  await eventually(() => expect(died()).toBe(true))
  const recorded = await eventually(() => visitorOf(derivedId('evt', batch(crashed).data.event_id)))
  await append(...opened(twin), batch(twin))
  const other = await eventually(() => visitorOf(derivedId('evt', batch(twin).data.event_id)))
  expect(other.id).not.toBe(recorded.id)
  await worker.stop()

  const next = await score(log)
  const request = handOff(crashed)
  await append(request)
  const final = await eventually(() => visitorOf(request.data.decision_id))
  expect(final.id).toBe(recorded.id)
  const { rows } = await world.database.pool.query(
    'select count(*)::int as decisions from read.decisions where session_id = $1',
    [crashed.id],
  )
  expect(rows).toEqual([{ decisions: 2 }])
  const place = { topic, partition: await log.partitionOf(topic, crashed.id) }
  await eventually(async () => expect(await readOffset(world.database.pool, place)).toBe(4))
  await next.stop()
})

it('counts each decision once, also where a batch comes again because its states were not committed', async () => {
  const session = testSession('counted', { client: headlessChrome })
  const silentOne = testSession('counted without a visitor')
  const counted: string[] = []
  const worker = await score(log, ({ verdict, reason }) => {
    counted.push(`${verdict} ${reason}`)
    if (reason !== 'hand_off' || verdict !== 'bot') throw new Error('died before the commit')
  })
  const counts = (...expected: string[]) => eventually(() => expect(counted).toEqual(expected))
  await append(...opened(session), batch(session))
  await counts('bot first')
  await append(...opened(silentOne), handOff(silentOne))
  await counts('bot first', 'inconclusive hand_off')
  await append(handOff(session))
  await counts('bot first', 'inconclusive hand_off', 'bot hand_off')
  await worker.stop()
})

it('goes on suspecting what it suspected when less becomes suspect', async () => {
  let asked = 0
  const waitFor = async () => void asked++
  const recovery = createRecovery({
    log,
    pool: world.database.pool,
    applied: { waitFor },
    logger: silent,
  })
  recovery.suspect(0, 100)
  recovery.suspect(0, 5)
  await recovery.findRecorded([{ partition: 0, offset: 50 }], ['evt_unknown'])
  expect(asked).toBe(1)
  await recovery.findRecorded([{ partition: 0, offset: 100 }], ['evt_unknown'])
  recovery.suspect(0, 5)
  await recovery.findRecorded([{ partition: 0, offset: 50 }], ['evt_unknown'])
  expect(asked).toBe(1)
})
