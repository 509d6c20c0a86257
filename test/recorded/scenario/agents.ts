import type { World } from '../world.ts'
import { withBodies, withoutBody } from './many.ts'

const item = { ip: '62.1.0.9', proxy_provider: 'BYTEFUL', desired_country_code: 'DE' }

/** Whether agents should go on with a proxy's address. */
export async function agents(world: World): Promise<void> {
  const { record, live, test, organizations } = world
  const check = { method: 'POST', path: '/v1/agents/ip-rotation', headers: live }
  await withoutBody(world, { name: 'rotation', ...check })
  const one = (changes: object) => ({ items: [{ ...item, ...changes }] })
  await withBodies(
    world,
    { name: 'rotation', ...check },
    {
      'nothing in it': {},
      'no items': { items: [] },
      'too many items': { items: Array.from({ length: 11 }, () => item) },
      'no address': one({ ip: undefined }),
      'address that is none': one({ ip: '62.1' }),
      'private address': one({ ip: '10.0.0.1' }),
      'no provider': one({ proxy_provider: undefined }),
      'provider with a typo': one({ proxy_provider: 'BYTEFULL' }),
      'provider in lower case': one({ proxy_provider: 'byteful' }),
      'no country': one({ desired_country_code: undefined }),
      'country in lower case': one({ desired_country_code: 'de' }),
      'country that nobody has': one({ desired_country_code: 'XX' }),
      'unknown member': one({ city: 'Berlin' }),
      'several mistakes': {
        items: [item, { ip: 'x', proxy_provider: 'x', desired_country_code: 'x' }],
      },
      'address to keep': one({}),
      'address of another country': one({ desired_country_code: 'US' }),
      'address of a data centre': one({ ip: '8.8.8.8', desired_country_code: 'US' }),
      'address of another provider': one({ ip: '62.2.0.1' }),
      'alias of a provider': one({ ip: '62.2.0.1', proxy_provider: 'APPLE_APPLEBOT' }),
      'address that is not known': one({ ip: '9.9.9.9' }),
      'address whose network is not known': one({ ip: '8.8.4.4', desired_country_code: 'US' }),
      'IPv6 address': one({ ip: '2a00:1450:4001:80b::200e' }),
      'two addresses': { items: [item, { ...item, desired_country_code: 'FR' }] },
    },
  )
  await record({ name: 'rotation by a test key', ...check, headers: test, body: one({}) })
  await requests(world)
  const { foreign } = organizations
  await record({
    name: 'rotation where it is off',
    ...check,
    headers: foreign.secret,
    body: one({}),
  })
}

const edgeRequest = {
  method: 'GET',
  scheme: 'https',
  authority: 'shop.example',
  path: '/?q=1',
  ip: '62.1.0.9',
  headers: [['User-Agent', 'curl/8.14.1']],
}

/** What requests that an edge saw say of who made them. */
async function requests(world: World): Promise<void> {
  const { live } = world
  const score = { method: 'POST', path: '/v1/requests/score', headers: live }
  const one = (changes: object) => ({ requests: [{ ...edgeRequest, ...changes }] })
  await withBodies(
    world,
    { name: 'requests', ...score },
    {
      'none of them': { requests: [] },
      'too many': { requests: Array.from({ length: 51 }, () => edgeRequest) },
      'address that is none': one({ ip: '62.1' }),
      'host that nobody lists': one({ authority: 'other.example' }),
      'several mistakes': one({ scheme: 'ftp', path: 'x', headers: [['a b', 'c']], ja4: 'x' }),
      'a program': one({}),
      'a name that is not proven': one({ headers: [['User-Agent', 'Googlebot/2.1']] }),
      'a signature that is incomplete': one({
        headers: [['Signature-Agent', '"https://agent.example"']],
      }),
    },
  )
}
