import type { World } from '../world.ts'
import type { Visits } from './collect.ts'
import { visitorOf } from './erasure.ts'

/** Two visitors are made one, and two again. */
export async function corrections(world: World, { robin, bot }: Visits): Promise<void> {
  const { record, live } = world
  const one = await visitorOf(world, robin.opened.sessionId, live)
  const other = await visitorOf(world, bot.opened.sessionId, live)
  const visitor_id = other.split('/').at(-1)
  const reason = 'One person, two browsers.'
  const merge = (name: string, path: string, body: object, headers = live) =>
    record(`merge visitors${name}`, `POST ${path}/merges`, headers, body)
  await merge(': itself', other, { visitor_id, reason })
  await merge(': no reason', one, { visitor_id })
  await merge(' of the other environment', one, { visitor_id, reason }, world.test)
  await merge('', one, { visitor_id, reason })
  await merge(': again', one, { visitor_id, reason })
  const id = bot.opened.sessionId
  await record('session: of a merged visitor', `GET /v1/sessions/${id}`, live)
  const split = (name: string, session_ids: string[]) => {
    const body = { session_ids, reason: 'Two people.' }
    return record(`split visitor${name}`, `POST ${one}/splits`, live, body)
  }
  await split(': no such session', [`sid_${'0'.repeat(26)}`])
  await split(': twice the same', [id, id])
  await split('', [id])
  await split(': again', [id])
  await record('session: of a split visitor', `GET /v1/sessions/${id}`, live)
}
