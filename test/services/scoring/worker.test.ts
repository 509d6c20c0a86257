import { expect, it } from 'vitest'
import { endSessions, runSessionScheduler } from '../../../services/scoring/scheduler.ts'
import { ensureOffset } from '../../../services/scoring/store.ts'
import { eventually } from '../../support/eventually.ts'
import {
  batch,
  documentOpened,
  handOff,
  idled,
  opened,
  startedAt,
  testSession,
  visitOf,
} from './support/events.ts'
import { useScoring } from './support/scoring.ts'
import { signalsOf } from './support/sessions.ts'
import { desktopFirefox, headlessChrome } from './support/snapshots.ts'

const topic = 'tidegate.collect.v1'
const minute = 60_000
const day = 24 * 60 * minute

const world = await useScoring()
const { decisionsOf } = world

const storedSessions = async () => {
  const text = 'select session_id from scoring.sessions order by opened_at'
  return (await world.pool.query(text)).rows.map(({ session_id }) => session_id)
}

it('makes a provisional decision at the first snapshot and a final one at the hand-off', async () => {
  await world.start()
  const session = testSession('one')
  const [first] = await decisionsOf(...visitOf(session))
  expect(first).toMatchObject({
    session_id: session.id,
    is_provisional: true,
    verdict: 'human',
    phase: 'snapshot',
  })
  const request = handOff(session)
  const [second] = await decisionsOf(request)
  expect(second).toMatchObject({ event_id: request.data.decision_id, is_provisional: false })
  expect(second?.visitor).toEqual(first?.visitor)
})

it('makes only the final decision if the hand-off arrives with the snapshot', async () => {
  await world.start()
  const person = testSession('person')
  const bot = testSession('bot', { client: headlessChrome })
  const decisions = await decisionsOf(
    ...opened(person),
    ...opened(bot),
    batch(person),
    batch(bot),
    handOff(bot),
  )
  expect(
    decisions.map(({ session_id, verdict, is_provisional }) => [
      session_id,
      verdict,
      is_provisional,
    ]),
  ).toEqual([
    [person.id, 'human', true],
    [bot.id, 'bot', false],
  ])
})

it('treats the id or token of another device as copied, and still recognizes the owner', async () => {
  await world.start()
  const owner = testSession('owner')
  const kept = { continuityIds: [owner.continuityId], continuityId: owner.continuityId }
  const [first] = await decisionsOf(...visitOf(owner))
  const thief = testSession('thief', { ...kept, client: desktopFirefox, ip: '198.51.100.7' })
  const [stolen] = await decisionsOf(...visitOf(thief))
  expect(stolen?.visitor).toMatchObject({ method: 'new', basis: 'probabilistic', confidence: 50 })
  expect(stolen?.visitor?.id).not.toBe(first?.visitor?.id)
  expect(signalsOf(stolen)).toContain('kept_id_of_another_device')
  const [later] = await decisionsOf(handOff(thief))
  expect(signalsOf(later)).toContain('kept_id_of_another_device')
  expect(later?.highlights.map(({ key }) => key)).toContain('copied_identity')

  const again = testSession('again', kept)
  const [returned] = await decisionsOf(...visitOf(again))
  const owns = {
    id: first?.visitor?.id,
    method: 'continuity',
    basis: 'deterministic',
    confidence: 99,
  }
  expect(returned?.visitor).toMatchObject(owns)
  expect(signalsOf(returned)).not.toContain('kept_id_of_another_device')
  expect(signalsOf(returned)).toContain('returning_visitor_fingerprint')

  const resumed = { ...again, client: desktopFirefox, documentHash: 'doc-resumed' }
  const taken = await decisionsOf(documentOpened(resumed), batch(resumed), handOff(resumed))
  expect(taken.at(-1)?.visitor).toMatchObject({ ...owns, basis: 'probabilistic', confidence: 50 })
  expect(signalsOf(taken.at(-1))).toContain('kept_id_of_another_device')
})

it('recognizes a distinctive desktop without an id after days, as a probable match', async () => {
  await world.start()
  const first = testSession('a')
  const [one] = await decisionsOf(...visitOf(first))
  world.now += 2 * day
  const again = testSession('b', { openedAt: world.now })
  const test = testSession('t', { openedAt: world.now, environment: 'test' })
  const [two, other] = await decisionsOf(...[again, test].flatMap(visitOf))
  const { id } = one?.visitor ?? {}
  expect(two?.visitor).toMatchObject({ id, method: 'fingerprint', basis: 'probabilistic' })
  expect(other?.visitor?.id).not.toBe(id)
  expect(signalsOf(two)).not.toContain('returning_visitor_fingerprint')
})

it('treats equal machines in one batch as different visitors, in doubt', async () => {
  await world.start()
  const fleet = ['a', 'b', 'c'].map((name) => testSession(name))
  const decisions = await decisionsOf(...fleet.flatMap(visitOf))
  expect(new Set(decisions.map(({ visitor }) => visitor?.id)).size).toBe(3)
  const doubted = { basis: 'probabilistic', confidence: 50 }
  expect(decisions.map(({ visitor }) => visitor)).toMatchObject([
    { basis: null, confidence: 85 },
    doubted,
    doubted,
  ])
})

it('ignores redelivered records', async () => {
  const stop = await world.start()
  const session = testSession('again')
  await decisionsOf(...visitOf(session))
  await decisionsOf(handOff(session))
  await stop()
  expect(await ensureOffset(world.pool, { topic, partition: 0 })).toBe(4)
  await world.start()
  await world.log.settled()
  expect(world.decisions()).toHaveLength(2)
})

it('repeats the same decisions after a crash between append and commit', async () => {
  let crash = true
  const { log } = world
  const crashing = {
    ...log,
    append: async (records: Parameters<typeof log.append>[0]) => {
      const positions = await log.append(records)
      if (crash) throw new Error('crashed after the append')
      return positions
    },
  }
  const stop = await world.start({ log: crashing })
  const session = testSession('crash')
  await world.append(...visitOf(session), handOff(session))
  expect(await ensureOffset(world.pool, { topic, partition: 0 })).toBe(0)
  await stop()
  crash = false
  await world.start({ log: crashing })
  await log.settled()
  const ids = world.decisions().map(({ event_id }) => event_id)
  expect(ids).toHaveLength(2)
  expect(ids[1]).toBe(ids[0])
  expect(new Set(world.decisions().map(({ visitor }) => visitor?.id)).size).toBe(1)
})

it('ends all idle sessions without waiting for the next poll', async () => {
  await world.pool.query(
    `insert into scoring.sessions
         (session_id, organization_id, environment, opened_at, last_activity_at, due_at, state)
       select 'sid_' || n, 'org_one', 'live', $1, $1, $2, '{}' from generate_series(1, 1200) n`,
    [startedAt, startedAt + 40 * minute],
  )
  world.now += 41 * minute
  world.stopLater(runSessionScheduler({ ...world.parts, intervalMs: 3_600_000 }).stop)
  await eventually(() => expect(world.log.records).toHaveLength(1200))
  expect(new Set(world.log.records.map(({ key }) => key)).size).toBe(1200)
})

it('ends an idle session once', async () => {
  await world.start()
  await decisionsOf(...visitOf(testSession('idle')))
  world.now += 29 * minute
  await endSessions(world.parts)
  await world.log.settled()
  expect(world.decisions()).toHaveLength(1)
  world.now += 12 * minute
  await Promise.all([endSessions(world.parts), endSessions(world.parts)])
  await world.log.settled()
  await endSessions(world.parts)
  await world.log.settled()
  expect(world.decisions()).toMatchObject([{}, { is_provisional: false, verdict: 'human' }])
})

it('deletes a final session by the log time of scored records, not by the clock', async () => {
  const stop = await world.start()
  const remaining = async () => {
    await endSessions(world.parts)
    await world.log.settled()
    return storedSessions()
  }
  const [session, other] = [testSession('over'), testSession('other')]
  await decisionsOf(...visitOf(session), handOff(session))
  await stop()
  world.now += 26 * 60 * minute
  await world.append(...opened(other))
  expect(await remaining()).toEqual([session.id])
  await world.start()
  await world.log.settled()
  expect(await remaining()).toEqual([other.id])
})

it('makes no decision about the end of a deleted session', async () => {
  await world.start()
  const end = idled(testSession('forgotten'), { at: world.now, reason: 'expired' })
  expect(await decisionsOf(end)).toEqual([])
  expect(await storedSessions()).toEqual([])
})
