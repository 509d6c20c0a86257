import type { Headers, Request } from '../http.ts'
import { headersOf, type Visit, type VisitOptions, visit } from '../visit.ts'
import { bearer, type World } from '../world.ts'

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

/** Sends what SDKs send: sessions from open to hand-off, and everything about them that is refused. */
export async function collect(world: World): Promise<Visits> {
  await withoutKeys(world)
  await openings(world)
  await keysOfOthers(world)
  const { live, test } = world.credentials
  const publishableKey = live.publishable_key
  const arrive = (name: string, options: Pick<VisitOptions, 'person'> & Partial<VisitOptions>) =>
    visit(world, { name, publishableKey, address, ...options })
  const robin = await arrive('robin', { person: 'robin' })
  await refusedBodies(world, robin)
  const { sealedToken } = await robin.finish()
  await afterTheResult(world, robin)
  const { resumeToken } = robin.opened
  await arrive('robin, another page', { person: 'robin', resumeToken, batches: 1 })
  const bot = await arrive('bot', { person: 'bot', address: '62.1.0.1' })
  await bot.finish()
  const script = await arrive('script', { person: 'script', address: '62.1.0.2' })
  await script.finish()
  const iosKey = tokenOf(await world.key({ name: 'iOS', client_target: 'native-ios' }))
  const ios = { publishableKey: iosKey, address: '62.2.0.1' }
  const phone = await arrive('phone', { person: 'phone', ...ios })
  await phone.finish()
  const androidKey = await world.key({ name: 'Android app', client_target: 'native-android' })
  const android = { publishableKey: tokenOf(androidKey), address: '62.2.0.2' }
  const tablet = await arrive('tablet', { person: 'tablet', ...android })
  await tablet.finish()
  const local = { publishableKey: test.publishable_key, address: '127.0.0.1' }
  const sam = await arrive('sam in the test environment', { person: 'sam', ...local })
  await sam.finish()
  return { robin, sealedToken, bot, test: sam }
}

const tokenOf = (key: Headers) => key.authorization?.slice('Bearer '.length) ?? ''

async function withoutKeys({ record, recordEach, recordMalformed }: World): Promise<void> {
  const headers = { origin: 'https://shop.example.com' }
  const pings = {
    'a ping': 'p-1_A',
    'a long ping': 'x'.repeat(128),
    'a ping that is too long': 'x'.repeat(129),
    'a ping with a dot': 'a.b',
  }
  for (const [name, id] of Object.entries(pings))
    await record(name, `GET /v2/collect/pings/${id}`, headers)
  const check = 'POST /v2/collect/network-checks'
  await recordMalformed('network check', check, () => headers)
  await recordEach('network check', check, headers, {
    'nothing in it': {},
    anything: { dns: { resolved: true }, ms: 12 },
    'more than 4 KiB': { text: 'x'.repeat(4096) },
  })
}

async function openings({
  record,
  recordEach,
  recordMalformed,
  credentials,
}: World): Promise<void> {
  const headers = bearer(credentials.live.publishable_key)
  const open = `POST ${path}`
  await recordMalformed('open', open, () => headers)
  const changed = (changes: object) => ({ ...good, ...changes })
  await recordEach('open', open, headers, {
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
  })
  const cookie = '__Host-sid=nonsense; other=1'
  await record('open with a cookie that is none', open, { ...headers, cookie }, good)
}

async function keysOfOthers({ record, key, live, credentials }: World): Promise<void> {
  const origins = ['https://shop.example.com', 'https://*.acme.example']
  const restricted = await key({ name: 'Restricted', allowed_origins: origins })
  const browser = bearer(credentials.live.publishable_key)
  const android = await key({ name: 'Android', client_target: 'native-android' })
  const shop = { origin: 'https://shop.example.com' }
  const open = (what: string, headers: Headers, platform = 'web') => {
    const body = { ...good, sdk: { ...sdk, platform } }
    return record(`open with ${what}`, `POST ${path}`, headers, body)
  }
  const subdomain = { origin: 'https://www.acme.example' }
  const evil = { origin: 'https://evil.example' }
  await open('a restricted key from its page', { ...restricted, ...shop })
  await open('a restricted key from a subdomain', { ...restricted, ...subdomain })
  await open('a restricted key from another page', { ...restricted, ...evil })
  await open('a restricted key without an origin', restricted)
  await open('a browser key in the Android SDK', browser, 'android')
  await open('a secret key', { ...live, ...shop })
  await open('an Android key in its SDK', android, 'android')
  await open('an Android key in the iOS SDK', android, 'ios')
  await open('an Android key in a browser', { ...android, ...shop })
  await open('no key from a page', shop)
}

/** Batches that the open session does not take, and the last one once more. */
async function refusedBodies(
  { send: sendRequest, organizations, credentials, key }: World,
  { sent: { batches: batch } }: Visit,
): Promise<void> {
  const send = (what: string, changes: Headers, other: Partial<Request> = {}) => {
    const headers = { ...batch.headers, ...changes }
    return sendRequest({ name: `batch: ${what}`, ...batch, headers, ...other })
  }
  await send('repeated', {})
  await send('wrong number', { 'X-Batch-Seq': '9' })
  await send('number that is a word', { 'X-Batch-Seq': 'two' })
  await send('no number', { 'X-Batch-Seq': '' })
  await send('no client key', { 'X-Client-Key': '' })
  await send('client key that is none', { 'X-Client-Key': 'abc' })
  await send('client key of another', { 'X-Client-Key': clientPublicKey })
  await send('JSON', { 'Content-Type': 'application/json' }, { body: '{}' })
  await send('no type', { 'Content-Type': '' })
  await send('empty', {}, { body: '' })
  await send('short', {}, { body: Buffer.from([1, 2, 3]) })
  await send('of another version', {}, { body: changedBytes(batch.body, 0) })
  await send('changed nonce', {}, { body: changedBytes(batch.body, 5) })
  await send('changed end', {}, { body: changedBytes(batch.body, -1) })
  await send('too large', {}, { body: Buffer.alloc(128 * 1024 + 57) })
  const otherSession = batch.path.replace(/sid_\w+/, `sid_${'0'.repeat(26)}`)
  await send('unknown session', {}, { path: otherSession })
  const otherDocument = batch.path.replace(/documents\/[\w-]+/, `documents/${'x'.repeat(80)}`)
  await send('unknown document', {}, { path: otherDocument })
  const testKey = credentials.test.publishable_key
  await send('key of the other environment', { Authorization: `Bearer ${testKey}` })
  const { id, secret } = organizations.foreign
  const { authorization = '' } = await key(
    { name: 'Public', type: 'publishable' },
    { path: `/v1/organizations/${id}`, headers: secret },
  )
  await send('key of another organization', { Authorization: authorization })
}

function changedBytes(body: Request['body'], at: number): Buffer {
  if (!(body instanceof Uint8Array)) throw new Error('not bytes')
  const bytes = Buffer.from(body)
  const index = (at + bytes.length) % bytes.length
  bytes[index] = (bytes[index] ?? 0) ^ 1
  return bytes
}

async function afterTheResult({ send, record }: World, { sent, opened }: Visit): Promise<void> {
  const { batches, results } = sent
  const again = (what: string, other: Partial<Request> = {}) =>
    send({ name: `result: ${what}`, ...results, ...other })
  await again('repeated')
  await again('changed', { body: changedBytes(results.body, -1) })
  await again('without a client key', { headers: { ...results.headers, 'X-Client-Key': '' } })
  const json = { ...results.headers, 'Content-Type': 'application/json' }
  await again('as JSON', { headers: json })
  await send({ name: 'batch after the result', ...batches })
  const authorization = results.headers?.Authorization ?? ''
  const headers = { ...headersOf('robin', { address }), authorization }
  const body = { ...good, resumeToken: opened.resumeToken }
  await record('open, resumed after the result', `POST ${path}`, headers, body)
}
