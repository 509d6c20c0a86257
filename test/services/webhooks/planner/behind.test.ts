import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestLogs } from '../../../support/logs.ts'
import { countEnds } from '../dispatch/gates.ts'
import { newId, openPlannerWorld, type PlannerWorld } from './planner-world.ts'

describe.each(openTestLogs())('$name: the read model is behind', (testLog) => {
  let world: PlannerWorld
  beforeEach(async () => {
    world = await openPlannerWorld(testLog)
  })
  afterEach(() => world.close())

  const tenant = () => ({ organization_id: newId('org'), session_id: newId('sid') })
  const told = (sessionId: string) =>
    world.raisedOf(sessionId).map(({ endpoint_ids }) => endpoint_ids)

  test('at its start the planner waits, so that an endpoint on the log is told of what comes then', async () => {
    await world.stopProjection()
    const who = tenant()
    const endpoint = await world.endpoint(who.organization_id, {}, { isSeen: false })
    const ends = countEnds(world.log)
    const asked = ends.asked(1)
    await world.start({ log: ends.log })
    await world.decision({ ...who, is_provisional: false, visitor: null })
    await asked
    expect(told(who.session_id)).toEqual([])
    await world.project()
    await world.planned()
    expect(told(who.session_id)).toEqual([[endpoint]])
  })
})
