import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { randomId } from '../../../../infra/ids.ts'
import type { EventLog, NewRecord, Position } from '../../../../infra/log/port.ts'
import type { SessionScored, WebhookEndpointCreated } from '../../../../schemas/events.ts'
import { type RunningPlanner, runPlanner } from '../../../../services/webhooks/planner/planner.ts'
import { eventually } from '../../../support/eventually.ts'
import { openTestLogs, type TestLog } from '../../../support/logs.ts'
import { noSkips } from '../../../support/no-skips.ts'
import { silent } from '../../../support/projections.ts'
import { sessionScored, visitorLink } from '../../../support/session-scored.ts'
import { countEnds } from '../held-log.ts'
import { newEventId, openWebhookLog } from '../webhook-log.ts'

const fingerprint = 'session.fingerprint.calculated'
const result = 'session.result.persisted'
const topic = 'tidegate.sessions.v1'
const now = 1_760_000_060_000
const patience = { timeoutMs: 30_000 }

const newSession = () => randomId('sid', randomBytes)
const newTenant = () => ({
  organization_id: randomId('org', randomBytes),
  session_id: newSession(),
})

/** Starts and stops planners, and appends decisions for them. */
async function openPlannerWorld(testLog: TestLog) {
  const world = await openWebhookLog(testLog)
  const { pool, log, codec, applied } = world
  const planners: RunningPlanner[] = []
  await world.project()

  async function decide(some: Partial<SessionScored>): Promise<Position> {
    const data = sessionScored({ event_id: newEventId(), ...some })
    const [position] = await world.append({ type: 'SessionScored', data })
    if (!position) throw new Error('nothing appended')
    return position
  }
  const raisedOf = async (sessionId: string) =>
    (await world.history())
      .flatMap(({ type, data }) => (type === 'WebhookEventRaised' ? [data] : []))
      .filter(({ subject_id }) => subject_id === sessionId)
      .sort((a, b) => a.type.localeCompare(b.type))

  return {
    ...world,
    decide,
    raisedOf,
    typesRaised: async (sessionId: string) => (await raisedOf(sessionId)).map(({ type }) => type),
    /** Creates an endpoint for both events and returns its id. */
    async subscribe(organization_id: string, some: Partial<WebhookEndpointCreated> = {}) {
      const both = { event_types: [fingerprint, result], created_at: now }
      return (await world.endpoint('https://hooks.example/', { organization_id, ...both, ...some }))
        .id
    },
    /** Appends the opening and a final decision with a visitor. */
    async visit(who: ReturnType<typeof newTenant>) {
      await decide({ ...who, visitor: null })
      await decide(who)
      await decide({ ...who, is_provisional: false })
    },
    async start({ from = log, onHalt = (_line: unknown) => {} } = {}): Promise<RunningPlanner> {
      const logger = silent.child({}, { level: 'silent' })
      logger.error = (line: unknown) => onHalt(line)
      const shared = { pool, codec, applied, clock: () => now, logger, skips: noSkips }
      const planner = await runPlanner({ ...shared, log: from })
      planners.push(planner)
      return planner
    },
    async stopPlanners() {
      for (const planner of planners.splice(0)) await planner.stop()
    },
    /** Resolves when everything appended so far is planned, that is, a later decision in each partition. */
    async planned(): Promise<void> {
      const missing = new Set((await log.endPositions(topic)).map(({ partition }) => partition))
      while (missing.size > 0) {
        const who = newTenant()
        if (missing.delete(await log.partitionOf(topic, who.session_id))) await decide(who)
      }
      const ends = await log.endPositions(topic)
      await eventually(() => {
        const statuses = planners.flatMap((planner) => planner.status())
        const isPast = ({ partition, offset }: Position) =>
          statuses.some((one) => one.partition === partition && one.nextOffset >= offset)
        if (!ends.every(isPast)) throw new Error('decisions are still being planned')
      }, patience)
    },
  }
}

/** Returns the log as a consumer group without committed offsets sees it. */
const afresh = (log: EventLog): EventLog => ({
  ...log,
  consume: (options) => log.consume({ ...options, group: `${options.group}.${newEventId()}` }),
})

describe.each(openTestLogs())('$name', async (testLog) => {
  const world = await openPlannerWorld(testLog)
  afterEach(() => world.stopPlanners())
  afterAll(() => world.close())

  test('a session raises each event once for its subscribers, however many decisions and restarts there are', async () => {
    const who = newTenant()
    const endpoint = await world.subscribe(who.organization_id)
    const ofTests = await world.subscribe(who.organization_id, { environment: 'test' })
    await world.visit(who)
    const tested = { ...who, session_id: newSession(), environment: 'test' as const }
    await world.decide({ ...tested, is_provisional: false })
    await world.start()
    await world.planned()
    await world.decide({ ...who, is_provisional: false, risk_score: 90 })
    await world.planned()
    await world.stopPlanners()
    await world.readable()
    await world.start()
    const visitor = visitorLink({ id: 'vid_00000000000000000000000009' })
    await world.decide({ ...who, visitor, is_provisional: false, risk_score: 40 })
    await world.planned()
    const raised = await world.raisedOf(who.session_id)
    expect(raised).toMatchObject([
      { type: fingerprint, environment: 'live', endpoint_ids: [endpoint] },
      { type: result, environment: 'live', endpoint_ids: [endpoint] },
    ])
    expect(JSON.parse(raised[1]?.data ?? '').decision.risk_score).toBe(7)
    expect(
      (await world.raisedOf(tested.session_id)).map(({ endpoint_ids }) => endpoint_ids),
    ).toEqual([[ofTests], [ofTests]])
  })

  test('a consumer group that reads the topic again raises nothing again', async () => {
    const who = newTenant()
    await world.subscribe(who.organization_id)
    await world.visit(who)
    await world.start()
    await world.planned()
    await world.readable()
    await world.stopPlanners()
    await world.start({ from: afresh(world.log) })
    await world.planned()
    expect(await world.typesRaised(who.session_id)).toEqual([fingerprint, result])
  })

  test('a crash between append and commit raises nothing twice, even if the read model lags', async () => {
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
    await world.start({ from: crashing })
    const who = newTenant()
    const endpoint = await world.subscribe(who.organization_id)
    await world.planned()
    await world.readable()
    await world.stopProjection()
    await world.visit(who)
    await world.planned()
    await eventually(async () => {
      const types = await world.typesRaised(who.session_id)
      for (const type of [fingerprint, result])
        expect(types.filter((one) => one === type).length).toBeGreaterThan(1)
    })
    await world.project()
    await world.readable()
    const { rows } = await world.pool.query(
      'select event_type from read.webhook_deliveries where endpoint_id = $1 order by 1',
      [endpoint],
    )
    expect(rows).toEqual([{ event_type: fingerprint }, { event_type: result }])
  })

  test('an endpoint created after the first decision does not get the event', async () => {
    await world.start()
    const who = newTenant()
    await world.visit(who)
    await world.planned()
    await world.subscribe(who.organization_id, { created_at: now + 60_000 })
    await world.stopPlanners()
    await world.start({ from: afresh(world.log) })
    await world.decide({ ...who, is_provisional: false })
    await world.planned()
    expect(await world.raisedOf(who.session_id)).toEqual([])
  })

  test('a filter applies to the first decision of a session, also after a restart', async () => {
    const who = newTenant()
    const { organization_id } = who
    const bots = { verdicts: ['bot' as const], min_risk_score: 60 }
    const filtered = await world.subscribe(organization_id, { filter: bots })
    const bot = { ...who, is_provisional: false, verdict: 'bot', risk_score: 60 } as const
    await world.decide({ ...who, is_provisional: false })
    await world.start()
    await world.planned()
    await world.decide(bot)
    await world.planned()
    await world.stopPlanners()
    await world.readable()
    await world.start()
    await world.decide({ ...bot, risk_score: 99 })
    await world.planned()
    expect(await world.raisedOf(who.session_id)).toEqual([])
    const all = await world.subscribe(organization_id)
    await world.readable()
    const raisedFor = async (some: Partial<SessionScored>) => {
      const session_id = newSession()
      await world.decide({ ...bot, session_id, ...some })
      await world.planned()
      return (await world.raisedOf(session_id)).map(({ endpoint_ids }) => endpoint_ids.toSorted())
    }
    expect(await raisedFor({})).toEqual(Array(2).fill([filtered, all].toSorted()))
    expect(await raisedFor({ risk_score: 59 })).toEqual([[all], [all]])
    expect(await raisedFor({ verdict: 'human' })).toEqual([[all], [all]])
  })

  test('at startup, the planner waits until the read model has all subscriptions', async () => {
    await world.stopProjection()
    const who = newTenant()
    const { organization_id } = who
    const { endpoint, event } = world.endpointCreated({ organization_id, created_at: now })
    await world.append(event)
    const ends = countEnds(world.log)
    const asked = ends.asked(1)
    await world.start({ from: ends.log })
    await world.decide({ ...who, is_provisional: false, visitor: null })
    await asked
    expect(await world.raisedOf(who.session_id)).toEqual([])
    await world.project()
    await world.planned()
    expect(await world.raisedOf(who.session_id)).toMatchObject([{ endpoint_ids: [endpoint.id] }])
  })

  test('a failing record stops its partition, is logged once, and delays no other partition', async () => {
    const halts: unknown[] = []
    const { organization_id } = newTenant()
    await world.subscribe(organization_id)
    const planner = await world.start({ onHalt: (line) => halts.push(line) })
    const home = (sessionId: string) => world.log.partitionOf(topic, sessionId)
    const before = newSession()
    const inPartition = async (isSame: boolean): Promise<string> => {
      const id = newSession()
      return ((await home(id)) === (await home(before))) === isSame ? id : inPartition(isSame)
    }
    const [poison, after, other] = [
      await inPartition(true),
      await inPartition(true),
      await inPartition(false),
    ]
    const decide = (session_id: string, evaluated_at = now) =>
      world.decide({ organization_id, session_id, evaluated_at })
    await decide(before)
    // Beyond the largest time of JavaScript, 275,000 years from now.
    const bad = await decide(poison, 8.7e15)
    await decide(after)
    await decide(other)
    await eventually(async () => expect(await world.raisedOf(other)).toHaveLength(1))
    await eventually(() =>
      expect(planner.status().filter(({ stopped }) => stopped)).toMatchObject([
        {
          partition: bad.partition,
          nextOffset: bad.offset,
          stopped: expect.stringContaining('Invalid time'),
        },
      ]),
    )
    expect(await world.raisedOf(before)).toHaveLength(1)
    expect([...(await world.raisedOf(poison)), ...(await world.raisedOf(after))]).toEqual([])
    expect(halts).toHaveLength(1)
    expect(JSON.stringify(halts)).toContain(`"offset":${bad.offset}`)
  })
})
