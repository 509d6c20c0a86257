import type { World } from '../world.ts'

const item = { ip: '62.1.0.9', proxy_provider: 'BYTEFUL', desired_country_code: 'DE' }

/** Asks if agents should go on with a proxy's address. */
export async function agents(world: World): Promise<void> {
  const { record, recordEach, recordMalformed, live, test, organizations } = world
  const check = 'POST /v1/agents/ip-rotation'
  await recordMalformed('rotation', check, () => live)
  const one = (changes: object) => ({ items: [{ ...item, ...changes }] })
  await recordEach('rotation', check, live, {
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
  })
  await record('rotation by a test key', check, test, one({}))
  await requests(world)
  await record('rotation where it is off', check, organizations.foreign.secret, one({}))
}

const edgeRequest = {
  method: 'GET',
  scheme: 'https',
  authority: 'shop.example',
  path: '/?q=1',
  ip: '62.1.0.9',
  headers: [['User-Agent', 'curl/8.14.1']],
}

/** Scores requests that an edge saw. */
async function requests({ recordEach, live }: World): Promise<void> {
  const one = (changes: object) => ({ requests: [{ ...edgeRequest, ...changes }] })
  const incomplete = [['Signature-Agent', '"https://agent.example"']]
  await recordEach('requests', 'POST /v1/requests/score', live, {
    'none of them': { requests: [] },
    'too many': { requests: Array.from({ length: 51 }, () => edgeRequest) },
    'address that is none': one({ ip: '62.1' }),
    'host that nobody lists': one({ authority: 'other.example' }),
    'several mistakes': one({ scheme: 'ftp', path: 'x', headers: [['a b', 'c']], ja4: 'x' }),
    'a program': one({}),
    'a name that is not proven': one({ headers: [['User-Agent', 'Googlebot/2.1']] }),
    'a signature that is incomplete': one({ headers: incomplete }),
  })
}
