import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { EventLog } from '../../../../infra/log/port.ts'
import { openTestLogs } from '../../../support/logs.ts'
import { newId, openPlannerWorld, type PlannerWorld } from './planner-world.ts'

describe.each(openTestLogs())('$name: the read model is behind', (testLog) => {
  let world: PlannerWorld
  beforeEach(async () => {
    world = await openPlannerWorld(testLog)
  })
  afterEach(() => world.close())

  const tenant = () => ({ organization_id: newId('org'), session_id: newId('sid') })
  const told = (sessionId: string) => world.raisedOf(sessionId).map(({ endpoint_ids }) => endpoint_ids)

  /** The log, and when somebody has asked it for the ends of the webhooks topic so many times. */
  function countingEnds() {
    let asked = 0
    const waiting: { times: number; resolve: () => void }[] = []
    const log: EventLog = {
      ...world.log,
      endPositions(topic) {
        asked++
        for (const { times, resolve } of waiting) if (asked >= times) resolve()
        return world.log.endPositions(topic)
      },
    }
    return {
      log,
      reached: (times: number) => new Promise<void>((resolve) => waiting.push({ times, resolve })),
    }
  }

  test('at its start the planner waits, so that an endpoint on the log is told of what comes then', async () => {
    await world.stopProjection()
    const who = tenant()
    const endpoint = await world.endpoint(who.organization_id, {}, { isSeen: false })
    const ends = countingEnds()
    const asked = ends.reached(1)
    await world.start({ log: ends.log })
    await world.decision({ ...who, is_provisional: false, visitor: null })
    await asked
    expect(told(who.session_id)).toEqual([])
    await world.project()
    await world.planned()
    expect(told(who.session_id)).toEqual([[endpoint]])
  })

  test('when the database went back the planner reads again what it had read', async () => {
    let identity = 'before'
    const ends = countingEnds()
    await world.start({ log: ends.log, identify: async () => identity })
    await world.planned()
    await world.readable()
    await world.stopProjection()
    const who = tenant()
    const endpoint = await world.endpoint(who.organization_id, {}, { isSeen: false })
    identity = 'after'
    const asked = ends.reached(2)
    await world.decision({ ...who, is_provisional: false, visitor: null })
    await asked
    expect(told(who.session_id)).toEqual([])
    await world.project()
    await world.planned()
    expect(told(who.session_id)).toEqual([[endpoint]])
  })
})
