import { visit } from '../visit.ts'
import type { World } from '../world.ts'
import type { Visits } from './collect.ts'

/** Somebody is exported and erased as a user, comes back as somebody new, and is erased as a visitor. */
export async function erasure(world: World, { test: sam }: Visits): Promise<void> {
  const { record, ask, own, test, live, credentials } = world
  const user = `${own}/users/sam%20%C3%BC`
  const session = `/v1/sessions/${sam.opened.sessionId}`
  await ask(`PATCH ${session}`, test, { client_user_id: 'sam ü' })
  const of = await visitorOf(world, sam.opened.sessionId)
  await record('export user', `GET ${user}/export`, test)
  await record('export visitor', `GET ${of}/export`, test)
  await record('export visitor of the other environment', `GET ${of}/export`, live)
  await record('erase user of the other environment', `DELETE ${user}`, live)
  await record('erase user', `DELETE ${user}`, test)
  await record('erase user again', `DELETE ${user}`, test)
  await record('export erased user', `GET ${user}/export`, test)
  await record('session: of an erased user', `GET ${session}`, test)

  const { publishable_key: publishableKey } = credentials.test
  const again = await visit(world, {
    name: 'sam once more',
    person: 'sam',
    publishableKey,
    address: '127.0.0.1',
  })
  await again.finish()
  const visitor = await visitorOf(world, again.opened.sessionId)
  await record('erase visitor', `DELETE ${visitor}`, test)
  await record('erase visitor again', `DELETE ${visitor}`, test)
  await record('erase unknown visitor', `DELETE ${own}/visitors/vid_${'0'.repeat(26)}`, test)
}

/** The path of the session's visitor, once it is decided. */
export async function visitorOf(
  { until, own, test }: World,
  sessionId: string,
  headers = test,
): Promise<string> {
  const { body } = await until(`GET /v1/sessions/${sessionId}`, headers, (answer) =>
    answer.body.includes('"decision_status":"final"'),
  )
  const id = /vid_[0-9a-z]{26}/.exec(body.toString('utf8'))?.[0] ?? ''
  return `${own}/visitors/${id}`
}
