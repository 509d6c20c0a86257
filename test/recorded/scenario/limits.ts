import { generateDeliveryKeys } from '../../../infra/wire/delivery-envelope.ts'
import { bearer, type World } from '../world.ts'

const times = async (count: number, send: () => Promise<unknown>) => {
  for (let i = 0; i < count; i++) await send()
}

/** Runs into each limit that can be reached within seconds. */
export async function limits(world: World): Promise<void> {
  const { record, ask, live, organizations, key, own, read, receiver, freshAddress } = world
  const { id: exhausted, secret } = organizations.exhausted
  const sessions = 'GET /v1/sessions'
  const publishable = await key(
    { name: 'Public', type: 'publishable' },
    { path: `/v1/organizations/${exhausted}`, headers: secret },
  )
  await record('limit: one unit of ten', sessions, secret)
  // More than there are: a unit comes back every six seconds.
  await times(30, () => ask(sessions, secret))
  await record('limit: no units left', sessions, secret)
  await record('limit: one unit of one', 'POST /v2/collect/sessions', publishable, {})
  await record('limit: none of one', 'POST /v2/collect/sessions', publishable, {})

  const endpoints = `${own}/webhooks/endpoints`
  const { id } = await read('endpoint to test often', `POST ${endpoints}`, live, {
    name: 'Tested',
    url: receiver.url('/accept'),
    event_types: ['session.result.persisted'],
  })
  const test = `POST ${endpoints}/${id}/test`
  await times(10, () => ask(test, live))
  await record('limit: eleventh test', test, live)

  const address = freshAddress()
  const { delivery } = generateDeliveryKeys()
  const signup = { service_id: 'acme', account_name: 'Robin', delivery }
  const create = 'POST /v1/gate/sessions'
  const opened = await read('limit: first signup', create, address, signup)
  await times(4, () => ask(create, address, signup))
  await record('limit: sixth signup', create, address, signup)
  const session = `/v1/gate/sessions/${opened.id}`
  await times(3, () => ask(`POST ${session}/approve`, address, {}))
  await record('limit: fourth approval', `POST ${session}/approve`, address, {})
  const polling = bearer(opened.poll_token)
  await times(30, () => ask(`GET ${session}`, polling))
  await record('limit: thirty-first poll', `GET ${session}`, polling)
  const looking = freshAddress()
  await times(30, () => ask(`GET ${session}/consent`, looking))
  await record('limit: thirty-first look at the consent', `GET ${session}/consent`, looking)
}
