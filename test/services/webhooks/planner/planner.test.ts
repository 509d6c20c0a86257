import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { EventLog, NewRecord } from '../../../../infra/log/port.ts'
import { eventually } from '../../../support/eventually.ts'
import { openTestLogs } from '../../../support/logs.ts'
import { sessionScored, visitorLink } from '../../../support/session-scored.ts'
import { afresh, newId, now, openPlannerWorld, type PlannerWorld } from './planner-world.ts'

const fingerprint = 'session.fingerprint.calculated'
const result = 'session.result.persisted'
const topic = 'tidegate.sessions.v1'
const day = 24 * 60 * 60 * 1000

describe.each(openTestLogs())('$name', (testLog) => {
  let world: PlannerWorld
  beforeAll(async () => {
    world = await openPlannerWorld(testLog)
  })
  afterEach(() => world.stopPlanners())
  afterAll(() => world.close())

  const tenant = () => ({ organization_id: newId('org'), session_id: newId('sid') })
  const typesRaised = (sessionId: string) => world.raisedOf(sessionId).map(({ type }) => type)

  async function visit(who: { organization_id: string; session_id: string }) {
    await world.decision({ ...who, visitor: null })
    await world.decision(who)
    await world.decision({ ...who, is_provisional: false })
  }

  test('a session raises each event once, however often it is decided and the planner starts', async () => {
    const who = tenant()
    await world.endpoint(who.organization_id)
    await visit(who)
    await world.start()
    await world.planned()
    expect(typesRaised(who.session_id)).toEqual([fingerprint, result])
    await world.decision({ ...who, is_provisional: false, risk_score: 90 })
    await world.planned()
    await world.stopPlanners()
    await world.readable()
    await world.start()
    const visitor = visitorLink({ id: 'vid_00000000000000000000000009' })
    await world.decision({ ...who, visitor, is_provisional: false, risk_score: 40 })
    await world.planned()
    const raised = world.raisedOf(who.session_id)
    expect(raised.map(({ type }) => type)).toEqual([fingerprint, result])
    expect(JSON.parse(raised[1]?.data ?? '').decision.risk_score).toBe(7)
  })

  test('a consumer group that reads the topic again from its start raises nothing again', async () => {
    await world.start()
    const who = tenant()
    const endpoint = await world.endpoint(who.organization_id)
    await visit(who)
    await world.planned()
    await world.readable()
    await world.stopPlanners()
    await world.start({ log: afresh(world.log) })
    await world.planned()
    expect(typesRaised(who.session_id)).toEqual([fingerprint, result])
    await world.readable()
    expect(await world.deliveries(who.session_id)).toEqual([
      `${fingerprint} ${endpoint}`,
      `${result} ${endpoint}`,
    ])
  })

  test('what is appended again because the read model is behind plans nothing twice', async () => {
    const seen = new Set<string>()
    const crashing: EventLog = {
      ...world.log,
      async append(records: NewRecord[]) {
        const positions = await world.log.append(records)
        const isFirst = records.some(({ key }) => !seen.has(key))
        for (const { key } of records) seen.add(key)
        if (isFirst) throw new Error('crashed after the append')
        return positions
      },
    }
    await world.start({ log: crashing })
    const who = tenant()
    const endpoint = await world.endpoint(who.organization_id)
    await world.planned()
    await world.readable()
    await world.stopProjection()
    await visit(who)
    await world.planned()
    await eventually(() => {
      const types = typesRaised(who.session_id)
      expect(types.filter((type) => type === fingerprint).length).toBeGreaterThan(1)
      expect(types.filter((type) => type === result).length).toBeGreaterThan(1)
    })
    await world.project()
    await world.readable()
    expect(await world.deliveries(who.session_id)).toEqual([
      `${fingerprint} ${endpoint}`,
      `${result} ${endpoint}`,
    ])
  })

  test('a crash between the append and the commit loses nothing and plans nothing twice', async () => {
    let crashes = 1
    const crashing: EventLog = {
      ...world.log,
      async append(records: NewRecord[]) {
        const positions = await world.log.append(records)
        if (crashes-- > 0) throw new Error('crashed after the append')
        return positions
      },
    }
    const who = tenant()
    const endpoint = await world.endpoint(who.organization_id)
    await world.decision({ ...who, is_provisional: false })
    await world.start({ log: crashing })
    await world.planned()
    await world.readable()
    expect(crashes).toBeLessThanOrEqual(0)
    expect(await world.deliveries(who.session_id)).toEqual([
      `${fingerprint} ${endpoint}`,
      `${result} ${endpoint}`,
    ])
  })

  test('an append that failed is made again', async () => {
    let failures = 1
    const failing: EventLog = {
      ...world.log,
      async append(records: NewRecord[]) {
        if (failures-- > 0) throw new Error('the log is away')
        return world.log.append(records)
      },
    }
    const who = tenant()
    await world.endpoint(who.organization_id)
    await world.decision({ ...who, is_provisional: false })
    await world.start({ log: failing })
    await world.planned()
    expect(failures).toBeLessThan(0)
    expect(typesRaised(who.session_id)).toEqual([fingerprint, result])
  })

  test('endpoints that are active and subscribed are told, of their own environment and organization', async () => {
    await world.start()
    const who = tenant()
    const both = await world.endpoint(who.organization_id)
    const one = await world.endpoint(who.organization_id, {
      event_types: [result],
      created_at: now + 1,
    })
    const disabled = await world.endpoint(who.organization_id)
    await world.disable(who.organization_id, disabled)
    const ofTests = await world.endpoint(who.organization_id, { environment: 'test' })
    await world.endpoint(newId('org'))
    await visit(who)
    const tested = {
      ...tenant(),
      organization_id: who.organization_id,
      environment: 'test' as const,
    }
    await world.decision({ ...tested, is_provisional: false })
    await world.planned()
    const told = (sessionId: string) =>
      world
        .raisedOf(sessionId)
        .map(({ type, environment, endpoint_ids }) => [environment, type, endpoint_ids])
    expect(told(who.session_id)).toEqual([
      ['live', fingerprint, [both]],
      ['live', result, [both, one]],
    ])
    expect(told(tested.session_id)).toEqual([
      ['test', fingerprint, [ofTests]],
      ['test', result, [ofTests]],
    ])
  })

  test('of an organization without endpoints nothing is raised, and an endpoint that comes later is not told', async () => {
    await world.start()
    const who = tenant()
    await visit(who)
    await world.planned()
    await world.endpoint(who.organization_id, { created_at: now + 60_000 })
    await world.stopPlanners()
    await world.start({ log: afresh(world.log) })
    await world.decision({ ...who, is_provisional: false })
    await world.planned()
    await world.readable()
    expect(world.raisedOf(who.session_id)).toEqual([])
    expect(await world.deliveries(who.session_id)).toEqual([])
  })

  test('of a session that is older than events are kept nothing is raised', async () => {
    await world.start()
    const who = tenant()
    await world.endpoint(who.organization_id)
    await world.decision({ ...who, created_at: now - 31 * day, is_provisional: false })
    await world.planned()
    expect(world.raisedOf(who.session_id)).toEqual([])
  })
})

describe.each(openTestLogs())('$name: a partition that cannot go on', (testLog) => {
  let world: PlannerWorld
  beforeAll(async () => {
    world = await openPlannerWorld(testLog)
  })
  afterAll(() => world.close())

  async function idWhere(fits: (partition: number) => boolean): Promise<string> {
    const id = newId('sid')
    return fits(await world.log.partitionOf(topic, id)) ? id : idWhere(fits)
  }

  async function sessions() {
    const before = newId('sid')
    const home = await world.log.partitionOf(topic, before)
    const neighbour = () => idWhere((partition) => partition === home)
    const other = await idWhere((partition) => partition !== home)
    return { before, poison: await neighbour(), after: await neighbour(), other }
  }

  test('stands still there, after what precedes it, says so once, and holds up no other', async () => {
    const halts: unknown[] = []
    const planner = await world.start({ onHalt: (line) => halts.push(line) })
    const { before, poison, after, other } = await sessions()
    await world.endpoint(sessionScored().organization_id)
    await world.decision({ session_id: before })
    // No time that anybody could write down: 275,000 years from now ends what JavaScript can.
    const bad = await world.decision({ session_id: poison, evaluated_at: 8.7e15 })
    await world.decision({ session_id: after })
    await world.decision({ session_id: other })
    await eventually(() => expect(world.raisedOf(other)).toHaveLength(1))
    await eventually(() =>
      expect(planner.status().filter(({ stopped }) => stopped)).toEqual([
        {
          ...bad,
          offset: undefined,
          nextOffset: bad.offset,
          stopped: expect.stringContaining('Invalid time'),
        },
      ]),
    )
    expect(world.raisedOf(before)).toHaveLength(1)
    expect([...world.raisedOf(poison), ...world.raisedOf(after)]).toEqual([])
    expect(halts).toHaveLength(1)
    expect(JSON.stringify(halts)).toContain(`"offset":${bad.offset}`)
  })

  test('also at a record that no schema wrote', async () => {
    await world.stopPlanners()
    const first = await world.start()
    const stuck = await eventually(() => {
      const stopped = first.status().find((status) => status.stopped)
      if (!stopped) throw new Error('the partition of the test before goes on')
      return stopped.partition
    })
    const key = await idWhere((partition) => partition !== stuck)
    const [bad] = await world.log.append([
      { topic, key, value: Buffer.from('not ours'), headers: {} },
    ])
    await eventually(() =>
      expect(first.status().find(({ partition }) => partition === bad?.partition)).toMatchObject({
        nextOffset: bad?.offset,
        stopped: expect.stringContaining('wire format'),
      }),
    )
  })
})
