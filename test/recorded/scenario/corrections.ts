import type { World } from '../world.ts'
import type { Visits } from './collect.ts'
import { visitorOf } from './erasure.ts'

/** Two visitors are made one, and two again. */
export async function corrections(world: World, { robin, bot }: Visits): Promise<void> {
  const { record, live } = world
  const [one, other] = [
    await visitorOf(world, robin.opened.sessionId, live),
    await visitorOf(world, bot.opened.sessionId, live),
  ]
  const visitor_id = other.split('/').at(-1)
  const reason = 'One person, two browsers.'
  const merge = (name: string, path: string, body: object, headers = live) =>
    record({ name: `merge visitors${name}`, method: 'POST', path: `${path}/merges`, headers, body })
  await merge(': itself', other, { visitor_id, reason })
  await merge(': no reason', one, { visitor_id })
  await merge(' of the other environment', one, { visitor_id, reason }, world.test)
  await merge('', one, { visitor_id, reason })
  await merge(': again', one, { visitor_id, reason })
  const path = `/v1/sessions/${bot.opened.sessionId}`
  await record({ name: 'session: of a merged visitor', method: 'GET', path, headers: live })
  const split = (name: string, session_ids: string[]) =>
    record({
      name: `split visitor${name}`,
      method: 'POST',
      path: `${one}/splits`,
      headers: live,
      body: { session_ids, reason: 'Two people.' },
    })
  await split(': no such session', [`sid_${'0'.repeat(26)}`])
  await split(': twice the same', [bot.opened.sessionId, bot.opened.sessionId])
  await split('', [bot.opened.sessionId])
  await split(': again', [bot.opened.sessionId])
  await record({ name: 'session: of a split visitor', method: 'GET', path, headers: live })
}
