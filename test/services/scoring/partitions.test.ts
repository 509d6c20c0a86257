import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import type { Position } from '../../../infra/log/port.ts'
import type { SessionEvent } from '../../../services/scoring/session/state.ts'
import { ensureOffset } from '../../../services/scoring/store.ts'
import type { RunningScoring } from '../../../services/scoring/worker.ts'
import { eventually } from '../../support/eventually.ts'
import { openTestLogs } from '../../support/logs.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { silent } from '../../support/projections.ts'
import { handOff, scoringTopics, testSession, visitOf } from './support/events.ts'
import { recordsOf, startScoring } from './support/scoring.ts'

const topic = 'tidegate.collect.v1'

describe.each(openTestLogs())('$name', async (testLog) => {
  let running: RunningScoring
  let errors: unknown[] = []

  const database = await createTestDatabase()
  const log = await testLog.open()
  await log.ensureTopics(scoringTopics)
  afterAll(async () => {
    await testLog.cleanup()
    await database.drop()
  })
  beforeEach(async () => {
    errors = []
    running = await start()
  })
  afterEach(() => running.stop())

  function start(network = noNetwork): Promise<RunningScoring> {
    const logger = silent.child({}, { level: 'silent' })
    logger.error = (...args: unknown[]) => errors.push(args)
    return startScoring({ log, pool: database.pool, logger, network })
  }

  /** Returns the position of the last event. */
  async function append(...events: SessionEvent[]): Promise<Position> {
    const position = (await log.append(recordsOf(...events))).at(-1)
    if (!position) throw new Error('nothing appended')
    return position
  }

  const visit = (name: string) => [...visitOf(testSession(name)), handOff(testSession(name))]

  const scored = ({ offset, ...place }: Position) =>
    eventually(async () => expect(await ensureOffset(database.pool, place)).toBeGreaterThan(offset))

  const decisionsOf = async (name: string) => {
    const { rows } = await database.pool.query<{ state: string }>(
      'select state from scoring.sessions where session_id = $1',
      [testSession(name).id],
    )
    return rows[0] && JSON.parse(rows[0].state).decisions
  }

  const deleteState = (name: string) =>
    database.pool.query('delete from scoring.sessions where session_id = $1', [
      testSession(name).id,
    ])

  const setOffsetAfter = ({ offset, partition }: Position) =>
    database.pool.query(
      'update scoring.offsets set next_offset = $1 where topic = $2 and partition = $3',
      [offset + 1, topic, partition],
    )

  const statusOf = ({ topic, partition }: Position) =>
    running.status().find((status) => status.topic === topic && status.partition === partition)

  /** Returns names of three sessions in one partition, and of one in another. */
  async function names(prefix: string) {
    const home = await log.partitionOf(topic, testSession(`${prefix}-0`).id)
    const same: string[] = []
    const other: string[] = []
    for (let i = 0; same.length < 3 || other.length < 1; i++) {
      const name = `${prefix}-${i}`
      const isHere = (await log.partitionOf(topic, testSession(name).id)) === home
      ;(isHere ? same : other).push(name)
    }
    return { same, other: other[0] ?? '' }
  }

  test('scores again after Postgres has lost its last commits', async () => {
    const { same } = await names('lost')
    const [first = '', second = '', third = ''] = same
    const before = await append(...visit(first))
    await scored(before)
    const last = await append(...visit(second))
    await scored(last)
    await deleteState(second)
    await setOffsetAfter(before)
    await scored(await append(...visit(third)))
    expect(await Promise.all(same.slice(0, 3).map(decisionsOf))).toEqual([1, 1, 1])
  })

  test('continues from a state that another process has changed or deleted', async () => {
    const { same } = await names('changed')
    const [counted = '', gone = ''] = same
    for (const name of [counted, gone]) await scored(await append(...visitOf(testSession(name))))
    await database.pool.query(
      `update scoring.sessions set state = jsonb_set(state::jsonb, '{decisions}', '40') where session_id = $1`,
      [testSession(counted).id],
    )
    await deleteState(gone)
    for (const name of [counted, gone]) await scored(await append(handOff(testSession(name))))
    expect(await Promise.all([counted, gone].map(decisionsOf))).toEqual([41, 1])
  })

  test('an undecodable record stops only its partition, after the records before it', async () => {
    const { same, other } = await names('poison')
    const [before = '', key = '', after = ''] = same
    await append(...visit(before))
    const [bad] = await log.append([
      { topic, key: testSession(key).id, value: Buffer.from('not ours'), headers: {} },
    ])
    if (!bad) throw new Error('nothing appended')
    const last = await append(...visit(after))
    await scored(await append(...visit(other)))
    await eventually(() =>
      expect(statusOf(bad)).toMatchObject({
        nextOffset: bad.offset,
        stopped: expect.stringContaining('wire format'),
      }),
    )
    expect([await decisionsOf(before), await decisionsOf(after)]).toEqual([1, undefined])
    expect(running.status().filter(({ stopped }) => stopped !== null)).toHaveLength(1)
    expect(errors).toHaveLength(1)
    expect(JSON.stringify(errors)).toContain(`"offset":${bad.offset}`)
    await setOffsetAfter(bad)
    await scored(last)
    await eventually(() =>
      expect(statusOf(bad)).toMatchObject({ nextOffset: last.offset + 1, stopped: null }),
    )
    expect(await decisionsOf(after)).toBe(1)
  })

  test('an event that cannot be scored stops its partition until the defect is fixed', async () => {
    await running.stop()
    const { same } = await names('defect')
    const [before = '', defect = '', after = ''] = same
    const poison = { ...testSession(defect), ip: '198.51.100.66' }
    const broken = {
      ...noNetwork,
      lookup: (...[ip, now]: Parameters<typeof noNetwork.lookup>) => {
        if (ip === poison.ip) throw new Error('this lookup has a defect')
        return noNetwork.lookup(ip, now)
      },
    }
    running = await start(broken)
    const first = await append(...visit(before), ...visitOf(poison))
    const last = await append(...visit(after))
    await eventually(() =>
      expect(statusOf(first)).toMatchObject({
        nextOffset: first.offset,
        stopped: expect.stringContaining('this lookup has a defect'),
      }),
    )
    expect(await decisionsOf(before)).toBe(2)
    await running.stop()
    running = await start()
    await scored(last)
    expect(await Promise.all([before, defect, after].map(decisionsOf))).toEqual([2, 1, 1])
    await eventually(() =>
      expect(running.status().every(({ stopped }) => stopped === null)).toBe(true),
    )
  })
})
