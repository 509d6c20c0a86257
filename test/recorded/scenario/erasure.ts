import { visit } from '../visit.ts'
import type { World } from '../world.ts'
import type { Visits } from './collect.ts'

/** Somebody is exported and erased as a user, comes back as somebody new, and is erased as a visitor. */
export async function erasure(world: World, { test: sam }: Visits): Promise<void> {
  const { record, quiet, own, test: headers, live, credentials } = world
  const user = `${own}/users/sam%20%C3%BC`
  const path = `/v1/sessions/${sam.opened.sessionId}`
  await quiet({ method: 'PATCH', path, headers, body: { client_user_id: 'sam ü' } })
  const of = await visitorOf(world, sam.opened.sessionId)
  await record({ name: 'export user', method: 'GET', path: `${user}/export`, headers })
  await record({ name: 'export visitor', method: 'GET', path: `${of}/export`, headers })
  await record({
    name: 'export visitor of the other environment',
    method: 'GET',
    path: `${of}/export`,
    headers: live,
  })
  await record({
    name: 'erase user of the other environment',
    method: 'DELETE',
    path: user,
    headers: live,
  })
  await record({ name: 'erase user', method: 'DELETE', path: user, headers })
  await record({ name: 'erase user again', method: 'DELETE', path: user, headers })
  await record({ name: 'export erased user', method: 'GET', path: `${user}/export`, headers })
  await record({ name: 'session: of an erased user', method: 'GET', path, headers })

  const again = await visit(world, {
    name: 'sam once more',
    person: 'sam',
    publishableKey: credentials.test.publishable_key,
    address: '127.0.0.1',
  })
  await again.finish()
  const visitor = await visitorOf(world, again.opened.sessionId)
  await record({ name: 'erase visitor', method: 'DELETE', path: visitor, headers })
  await record({ name: 'erase visitor again', method: 'DELETE', path: visitor, headers })
  const unknown = `${own}/visitors/vid_${'0'.repeat(26)}`
  await record({ name: 'erase unknown visitor', method: 'DELETE', path: unknown, headers })
}

/** The path of the session's visitor, once it is decided. */
export async function visitorOf(
  { until, own, test }: World,
  sessionId: string,
  headers = test,
): Promise<string> {
  const session = { method: 'GET', path: `/v1/sessions/${sessionId}`, headers }
  const { body } = await until(session, (answer) =>
    answer.body.includes('"decision_status":"final"'),
  )
  const id = /vid_[0-9a-z]{26}/.exec(body.toString('utf8'))?.[0] ?? ''
  return `${own}/visitors/${id}`
}
