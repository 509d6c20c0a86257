import { changedToken } from '../visit.ts'
import type { World } from '../world.ts'
import type { Visits } from './collect.ts'
import { withBodies, withoutBody } from './many.ts'

/** The back end of the demo page. */
export async function demo(world: World, { sealedToken, robin }: Visits): Promise<void> {
  const { record } = world
  const verify = { method: 'POST', path: '/demo/api/verify' }
  await withoutBody(world, { name: 'demo', ...verify })
  await withBodies(
    world,
    { name: 'demo', ...verify },
    {
      'nothing in it': {},
      'empty token': { sealedToken: '' },
      'token that is none': { sealedToken: 'nonsense' },
      'changed token': { sealedToken: changedToken(sealedToken) },
    },
  )
  const answer = await record({ name: 'demo: a sealed token', ...verify, body: { sealedToken } })
  const { raw_url: link }: { raw_url: string } = JSON.parse(answer.body.toString('utf8'))
  await record({ name: 'demo: the session behind the link', method: 'GET', path: link })
  const path = `/demo/api/sessions/${robin.opened.sessionId}`
  await record({ name: 'demo: a session without proof', method: 'GET', path })
  await record({
    name: 'demo: a session with another proof',
    method: 'GET',
    path: `${path}?proof=nonsense`,
  })
  await record({
    name: 'demo: a session that is malformed',
    method: 'GET',
    path: '/demo/api/sessions/nonsense',
  })
}
