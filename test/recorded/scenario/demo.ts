import { changedToken } from '../visit.ts'
import type { World } from '../world.ts'
import type { Visits } from './collect.ts'

/** The back end of the demo page. */
export async function demo(world: World, { sealedToken, robin }: Visits): Promise<void> {
  const { record, recordEach, recordMalformed } = world
  const verify = 'POST /demo/api/verify'
  await recordMalformed('demo', verify, () => ({}))
  await recordEach(
    'demo',
    verify,
    {},
    {
      'nothing in it': {},
      'empty token': { sealedToken: '' },
      'token that is none': { sealedToken: 'nonsense' },
      'changed token': { sealedToken: changedToken(sealedToken) },
    },
  )
  const answer = await record('demo: a sealed token', verify, {}, { sealedToken })
  const { raw_url: link }: { raw_url: string } = JSON.parse(answer.body.toString('utf8'))
  await record('demo: the session behind the link', `GET ${link}`)
  const path = `/demo/api/sessions/${robin.opened.sessionId}`
  await record('demo: a session without proof', `GET ${path}`)
  await record('demo: a session with another proof', `GET ${path}?proof=nonsense`)
  await record('demo: a session that is malformed', 'GET /demo/api/sessions/nonsense')
}
