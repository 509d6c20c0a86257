import type { Request } from '../http.ts'
import { headersOf, type Visit, visit } from '../visit.ts'
import { bearer, type Headers, type World } from '../world.ts'
import { withBodies, withoutBody } from './many.ts'

const path = '/v2/collect/sessions'
const clientPublicKey = 'B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9_AsrhtHHw'
const sdk = { name: 'tidegate-web', version: '1.0.0', platform: 'web' }
const page = { url: 'https://shop.example.com/', referrer: null }
const good = { clientPublicKey, sdk, page }
const address = '8.8.8.8'

export interface Visits {
  robin: Visit
  sealedToken: string
  bot: Visit
  test: Visit
}

/** What SDKs send: sessions from open to hand-off, and everything about them that is refused. */
export async function collect(world: World): Promise<Visits> {
  await withoutKeys(world)
  await openings(world)
  await keysOfOthers(world)
  const publishableKey = world.credentials.live.publishable_key
  const robin = await visit(world, { name: 'robin', person: 'robin', publishableKey, address })
  await refusedBodies(world, robin)
  const { sealedToken } = await robin.finish()
  await afterTheResult(world, robin)
  await visit(world, {
    name: 'robin, another page',
    person: 'robin',
    publishableKey,
    address,
    resumeToken: robin.opened.resumeToken,
    batches: 1,
  })
  const bot = await visit(world, {
    name: 'bot',
    person: 'bot',
    publishableKey,
    address: '62.1.0.1',
  })
  await bot.finish()
  const script = await visit(world, {
    name: 'script',
    person: 'script',
    publishableKey,
    address: '62.1.0.2',
  })
  await script.finish()
  const iosKey = await world.key({ name: 'iOS', client_target: 'native-ios' })
  const phone = await visit(world, {
    name: 'phone',
    person: 'phone',
    publishableKey: tokenOf(iosKey),
    address: '62.2.0.1',
  })
  await phone.finish()
  const androidKey = await world.key({ name: 'Android app', client_target: 'native-android' })
  const tablet = await visit(world, {
    name: 'tablet',
    person: 'tablet',
    publishableKey: tokenOf(androidKey),
    address: '62.2.0.2',
  })
  await tablet.finish()
  const test = await visit(world, {
    name: 'sam in the test environment',
    person: 'sam',
    publishableKey: world.credentials.test.publishable_key,
    address: '127.0.0.1',
  })
  await test.finish()
  return { robin, sealedToken, bot, test }
}

const tokenOf = (key: Headers) => key.authorization?.slice('Bearer '.length) ?? ''

async function withoutKeys(world: World): Promise<void> {
  const { record } = world
  const headers = { origin: 'https://shop.example.com' }
  const pings = {
    'a ping': 'p-1_A',
    'a long ping': 'x'.repeat(128),
    'a ping that is too long': 'x'.repeat(129),
    'a ping with a dot': 'a.b',
  }
  for (const [name, id] of Object.entries(pings)) {
    await record({ name, method: 'GET', path: `/v2/collect/pings/${id}`, headers })
  }
  const check = { method: 'POST', path: '/v2/collect/network-checks', headers }
  await withoutBody(world, { name: 'network check', ...check })
  await withBodies(
    world,
    { name: 'network check', ...check },
    {
      'nothing in it': {},
      anything: { dns: { resolved: true }, ms: 12 },
      'more than 4 KiB': { text: 'x'.repeat(4096) },
    },
  )
}

async function openings(world: World): Promise<void> {
  const headers = bearer(world.credentials.live.publishable_key)
  const open = { method: 'POST', path, headers }
  await withoutBody(world, { name: 'open', ...open })
  const changed = (changes: object) => ({ ...good, ...changes })
  await withBodies(
    world,
    { name: 'open', ...open },
    {
      'nothing in it': {},
      'no client key': changed({ clientPublicKey: undefined }),
      'short client key': changed({ clientPublicKey: 'abc' }),
      'client key of low order': changed({ clientPublicKey: 'A'.repeat(43) }),
      'no SDK': changed({ sdk: undefined }),
      'SDK without a name': changed({ sdk: { ...sdk, name: '' } }),
      'SDK with a long version': changed({ sdk: { ...sdk, version: 'x'.repeat(101) } }),
      'SDK with a control character': changed({ sdk: { ...sdk, name: 'a\u0007b' } }),
      'unknown platform': changed({ sdk: { ...sdk, platform: 'windows' } }),
      'no page': changed({ page: undefined }),
      'page that is null': changed({ page: null }),
      'page without a URL': changed({ page: {} }),
      'relative page': changed({ page: { url: '/checkout' } }),
      'referrer of another type': changed({ page: { ...page, referrer: 7 } }),
      'long resume token': changed({ resumeToken: 'x'.repeat(1025) }),
      'resume token that is none': changed({ resumeToken: 'nonsense' }),
      'long continuity': changed({ continuity: 'x'.repeat(1025) }),
      'continuity that is none': changed({ continuity: 'nonsense' }),
      'unknown member': changed({ color: 'red' }),
    },
  )
  const cookie = { cookie: '__Host-sid=nonsense; other=1' }
  await world.record({
    name: 'open with a cookie that is none',
    ...open,
    headers: { ...headers, ...cookie },
    body: good,
  })
}

async function keysOfOthers({ record, key, live, credentials }: World): Promise<void> {
  const origins = ['https://shop.example.com', 'https://*.acme.example']
  const restrictedKey = await key({ name: 'Restricted', allowed_origins: origins })
  const browserKey = bearer(credentials.live.publishable_key)
  const androidKey = await key({ name: 'Android', client_target: 'native-android' })
  const open = (
    name: string,
    key: Headers,
    { origin, platform = 'web' }: { origin?: string; platform?: string },
  ) =>
    record({
      name: `open with ${name}`,
      method: 'POST',
      path,
      headers: { ...key, ...(origin !== undefined && { origin }) },
      body: { ...good, sdk: { ...sdk, platform } },
    })
  await open('a restricted key from its page', restrictedKey, {
    origin: 'https://shop.example.com',
  })
  await open('a restricted key from a subdomain', restrictedKey, {
    origin: 'https://www.acme.example',
  })
  await open('a restricted key from another page', restrictedKey, {
    origin: 'https://evil.example',
  })
  await open('a restricted key without an origin', restrictedKey, {})
  await open('a browser key in the Android SDK', browserKey, { platform: 'android' })
  await open('a secret key', live, { origin: 'https://shop.example.com' })
  await open('an Android key in its SDK', androidKey, { platform: 'android' })
  await open('an Android key in the iOS SDK', androidKey, { platform: 'ios' })
  await open('an Android key in a browser', androidKey, { origin: 'https://shop.example.com' })
  await open('no key from a page', {}, { origin: 'https://shop.example.com' })
}

/** Batches that the open session does not take, and the last one once more. */
async function refusedBodies(
  { record, organizations, credentials, key }: World,
  { sent }: Visit,
): Promise<void> {
  const batch = sent.batches
  const send = (
    what: string,
    changes: Headers,
    body: Request['body'] = batch.body,
    at = batch.path,
  ) =>
    record({
      name: `batch: ${what}`,
      ...batch,
      path: at,
      headers: { ...batch.headers, ...changes },
      body,
    })
  await send('repeated', {})
  await send('wrong number', { 'X-Batch-Seq': '9' })
  await send('number that is a word', { 'X-Batch-Seq': 'two' })
  await send('no number', { 'X-Batch-Seq': '' })
  await send('no client key', { 'X-Client-Key': '' })
  await send('client key that is none', { 'X-Client-Key': 'abc' })
  await send('client key of another', { 'X-Client-Key': clientPublicKey })
  await send('JSON', { 'Content-Type': 'application/json' }, '{}')
  await send('no type', { 'Content-Type': '' })
  await send('empty', {}, '')
  await send('short', {}, Buffer.from([1, 2, 3]))
  await send('of another version', {}, changedBytes(batch.body, 0))
  await send('changed nonce', {}, changedBytes(batch.body, 5))
  await send('changed end', {}, changedBytes(batch.body, -1))
  await send('too large', {}, Buffer.alloc(128 * 1024 + 57))
  await send(
    'unknown session',
    {},
    batch.body,
    batch.path.replace(/sid_\w+/, `sid_${'0'.repeat(26)}`),
  )
  await send(
    'unknown document',
    {},
    batch.body,
    batch.path.replace(/documents\/[\w-]+/, `documents/${'x'.repeat(80)}`),
  )
  await send('key of the other environment', {
    Authorization: `Bearer ${credentials.test.publishable_key}`,
  })
  const { id, secret } = organizations.foreign
  const foreign = await key(
    { name: 'Public', type: 'publishable' },
    { path: `/v1/organizations/${id}`, headers: secret },
  )
  await send('key of another organization', { Authorization: foreign.authorization ?? '' })
}

function changedBytes(body: Request['body'], at: number): Buffer {
  if (!(body instanceof Uint8Array)) throw new Error('not bytes')
  const bytes = Buffer.from(body)
  const index = (at + bytes.length) % bytes.length
  bytes[index] = (bytes[index] ?? 0) ^ 1
  return bytes
}

async function afterTheResult({ record }: World, { sent, opened }: Visit): Promise<void> {
  const { batches, results } = sent
  await record({ name: 'result: repeated', ...results })
  await record({ name: 'result: changed', ...results, body: changedBytes(results.body, -1) })
  await record({
    name: 'result: without a client key',
    ...results,
    headers: { ...results.headers, 'X-Client-Key': '' },
  })
  await record({
    name: 'result: as JSON',
    ...results,
    headers: { ...results.headers, 'Content-Type': 'application/json' },
  })
  await record({ name: 'batch after the result', ...batches })
  const body = { ...good, resumeToken: opened.resumeToken }
  const headers = {
    ...headersOf('robin', { address }),
    authorization: results.headers?.Authorization ?? '',
  }
  await record({ name: 'open, resumed after the result', method: 'POST', path, headers, body })
}
