import { generateDeliveryKeys } from '../../../infra/wire/delivery-envelope.ts'
import { bearer, type World } from '../world.ts'

const times = async (count: number, send: () => Promise<unknown>) => {
  for (let i = 0; i < count; i++) await send()
}

/** What too many requests are answered, by each limit that can be reached within seconds. */
export async function limits(world: World): Promise<void> {
  const { record, quiet, live, organizations, key, own, read, receiver, freshAddress } = world
  const { id: exhausted, secret } = organizations.exhausted
  const list = { method: 'GET', path: '/v1/sessions', headers: secret }
  const publishable = await key(
    { name: 'Public', type: 'publishable' },
    { path: `/v1/organizations/${exhausted}`, headers: secret },
  )
  await record({ name: 'limit: one unit of ten', ...list })
  // More than there are: a unit comes back every six seconds.
  await times(30, () => quiet(list))
  await record({ name: 'limit: no units left', ...list })
  const open = {
    method: 'POST',
    path: '/v2/collect/sessions',
    headers: publishable,
    body: {},
  }
  await record({ name: 'limit: one unit of one', ...open })
  await record({ name: 'limit: none of one', ...open })

  const endpoint = {
    name: 'Tested',
    url: receiver.url('/accept'),
    event_types: ['session.result.persisted'],
  }
  const path = `${own}/webhooks/endpoints`
  const { id } = await read({
    name: 'endpoint to test often',
    method: 'POST',
    path,
    headers: live,
    body: endpoint,
  })
  const test = { method: 'POST', path: `${path}/${id}/test`, headers: live }
  await times(10, () => quiet(test))
  await record({ name: 'limit: eleventh test', ...test })

  const headers = freshAddress()
  const { delivery } = generateDeliveryKeys()
  const signup = { service_id: 'acme', account_name: 'Robin', delivery }
  const create = { method: 'POST', path: '/v1/gate/sessions', headers, body: signup }
  const opened = await read({ name: 'limit: first signup', ...create })
  await times(4, () => quiet(create))
  await record({ name: 'limit: sixth signup', ...create })
  const session = `/v1/gate/sessions/${opened.id}`
  const approve = { method: 'POST', path: `${session}/approve`, headers, body: {} }
  await times(3, () => quiet(approve))
  await record({ name: 'limit: fourth approval', ...approve })
  const poll = { method: 'GET', path: session, headers: bearer(opened.poll_token) }
  await times(30, () => quiet(poll))
  await record({ name: 'limit: thirty-first poll', ...poll })
  const consent = { method: 'GET', path: `${session}/consent`, headers: freshAddress() }
  await times(30, () => quiet(consent))
  await record({ name: 'limit: thirty-first look at the consent', ...consent })
}
