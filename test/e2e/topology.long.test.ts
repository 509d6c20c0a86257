import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect } from 'vitest'
import { allRoles } from '../../services/server/roles.ts'
import { openWorld, type World } from '../reliability/world.ts'
import { needs } from '../support/needs.ts'
import { readBack, rebuildable, rebuildIsEqual } from '../support/roles.ts'
import { startTraffic } from '../support/session-traffic.ts'

const { describe, it } = needs('kafka-jars', 'postgresql')

const seed = process.env.SEED ?? randomBytes(4).toString('hex')
const leastSessions = 500

describe(`three brokers, Debian's PostgreSQL, seed ${seed}`, () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld({ seed, env: { FROM_SOURCE: '' } })
  }, 240_000)
  afterAll(() => world?.stop(), 60_000)

  it('loses nothing and refuses nothing while every role is replaced', async () => {
    const { roles, owner } = world
    const traffic = startTraffic({
      baseUrl: () => roles.url('collect'),
      publishableKey: owner.publishable.key,
      seed,
      sessions: 20 * leastSessions,
      atOnce: 6,
    })
    const isOver = traffic.done.then(() => true)
    for (const role of allRoles) await roles.replace(role)
    const wasOver = await Promise.race([isOver, Promise.resolve(false)])
    await traffic.reached(leastSessions)
    traffic.stop()
    await traffic.done
    const { lost, listed } = await readBack(roles.url('api'), owner, traffic.finished)
    const { finished, answers } = traffic
    console.log(
      `${finished.length} sessions, ${lost.length} lost, ${traffic.failed.length} failed requests, answers ${JSON.stringify(answers)}`,
    )
    expect(wasOver).toBe(false)
    expect({ failed: traffic.failed, givenUp: traffic.givenUp, lost }).toEqual({
      failed: [],
      givenUp: [],
      lost: [],
    })
    expect(finished.length).toBeGreaterThanOrEqual(leastSessions)
    expect(listed).toBe(finished.length)
  }, 400_000)

  it.each(rebuildable)(
    'has no wrong row: a rebuild of %s is equal',
    (name) => rebuildIsEqual(world.settings, name),
    120_000,
  )
})
