import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { type CollectClientOptions, createCollectClient } from '../../infra/wire/collect/client.ts'
import { headersOf } from '../../services/cli/simulate/generate/headers.ts'
import { planSession, webOnlyMix } from '../../services/cli/simulate/generate/plan.ts'
import { validatingFetch } from '../support/described.ts'
import type { KnownSecrets } from '../support/known-secrets.ts'
import type { RunningTidegate } from '../support/tidegate.ts'

/** Words that are in the data on purpose: a scan that does not find them does not look. */
export const markers = {
  /** In an observation that the protocol knows. */
  observed: `observed-${randomBytes(8).toString('hex')}`,
  organizationName: `Organization ${randomBytes(8).toString('hex')}`,
}

const hex = () => randomBytes(12).toString('hex')
/** Allows values in storage, because callers read them back, but not in log lines. */
const storedOnly = (place: string) => place !== 'output'
/** The body of a batch is kept as the page sent it. */
const batchesOnly = (place: string) => place === 'opened BatchReceived'

interface Request {
  key?: string
  /** Sent as JSON, a text as it is. */
  body?: unknown
  headers?: Record<string, string>
}

/** Sends the request of a line, such as `GET /v1/sessions`, by default with the live secret key. */
function sender({ baseUrl, credentials }: RunningTidegate) {
  const described = validatingFetch(baseUrl)
  return async (
    line: string,
    { key = credentials.live.secret_key, body, headers }: Request = {},
  ) => {
    const [method = '', path = ''] = line.split(' ')
    const response = await (await described)(baseUrl + path, {
      method,
      headers: {
        ...(key && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return { line, status: response.status, text, headers: response.headers }
  }
}

type Answer = Awaited<ReturnType<ReturnType<typeof sender>>>

/** Throws where the status is another one; returns `data`. */
function dataOf({ line, status, text }: Answer, expected = 200) {
  if (status !== expected) throw new Error(`${line}: ${status} ${text}`)
  return JSON.parse(text).data
}

/** Issues, rotates, uses and revokes keys over REST; returns how many were revealed. */
export async function issueKeys(server: RunningTidegate, secrets: KnownSecrets): Promise<number> {
  const send = sender(server)
  const base = `/v1/organizations/${server.credentials.organization_id}/api-keys`
  const revealed = new Set<string>()

  async function create(path: string, body?: unknown): Promise<string> {
    const idempotencyKey = `order of ${hex()}`
    secrets.add('an Idempotency-Key', idempotencyKey)
    const request = { body, headers: { 'idempotency-key': idempotencyKey } }
    const [first, again] = [
      await send(`POST ${path}`, request),
      await send(`POST ${path}`, request),
    ]
    const data = dataOf(first, 201)
    if (again.text !== first.text || !again.headers.get('idempotent-replayed'))
      throw new Error(`POST ${path}: ${first.text}, then ${again.status} ${again.text}`)
    if (data.revealed_key?.startsWith('sk_')) {
      secrets.addKey(`a key revealed by ${path}`, data.revealed_key)
      revealed.add(data.revealed_key)
    }
    return data.id
  }

  const slug = `s-${hex()}`
  await create('/v1/organizations', { name: markers.organizationName, slug })
  const ids = [
    await create(base, { name: 'Reader', type: 'secret', scopes: ['sessions:read'] }),
    await create(base, { name: 'Page', allowed_origins: ['https://shop.example'] }),
    await create(base, { name: 'Narrow' }),
  ]
  for (const id of ids) await create(`${base}/${id}/rotations`)
  const last = await create(base, { name: 'To be revoked' })
  dataOf(await send(`PATCH ${base}/${ids[0]}`, { body: { name: 'Renamed' } }))
  dataOf(await send(`DELETE ${base}/${last}`))
  dataOf(await send(`GET ${base}`))
  for (const key of revealed) await send('GET /v1/sessions', { key })
  return revealed.size
}

/** Makes, rotates and tests a webhook endpoint whose URL has a token in it; returns how many secrets were revealed. */
export async function issueSigningSecrets(
  server: RunningTidegate,
  secrets: KnownSecrets,
): Promise<number> {
  const send = sender(server)
  const base = `/v1/organizations/${server.credentials.organization_id}/webhooks/endpoints`
  const token = hex()
  secrets.add('the token in an endpoint URL', token, storedOnly)
  const url = `https://receiver.example/hooks?token=${token}`
  const body = { name: 'Carrying', url, event_types: ['session.result.persisted'] }

  async function reveal(path: string, request: Request = {}): Promise<string> {
    const { id, signing_secret } = dataOf(await send(`POST ${path}`, request), 201)
    secrets.add('a signing secret', signing_secret)
    // Standard Webhooks signs with the bytes that the rest of it encodes.
    secrets.add('the key in a signing secret', signing_secret.slice('whsec_'.length))
    return id
  }

  const id = await reveal(base, { body })
  await reveal(`${base}/${id}/rotations`)
  dataOf(await send(`POST ${base}/${id}/test`), 202)
  dataOf(await send(`GET ${base}`))
  return 2
}

/** Sends a key wherever a confused caller might put it; all of it is refused, so none of it is stored. */
export async function misplaceKeys(
  server: RunningTidegate,
  secrets: KnownSecrets,
): Promise<number> {
  const send = sender(server)
  const { organization_id: organization, live, test } = server.credentials
  const keys = [live.secret_key, test.secret_key]
  const wrong = `sk_live_${randomBytes(24).toString('hex')}`
  secrets.add('a key that never was', wrong)
  let refused = 0
  for (const key of [...keys, wrong]) {
    const base = `/v1/organizations/${organization}`
    const sdk = { name: '', version: key, platform: key }
    const collect = { clientPublicKey: key, sdk, resumeToken: key }
    const endpoint = { name: 'x', url: key, event_types: [key] }
    const named = (name: string) => ({ body: {}, headers: { 'idempotency-key': name } })
    const requests: [line: string, request?: Request][] = [
      ['GET /v1/sessions', { headers: { authorization: `Basic ${key}` } }],
      ['GET /v1/sessions', { key: `${key}x` }],
      ['GET /v1/sessions', { key: `${key} ${key}` }],
      [`GET /v1/sessions?cursor=${key}`],
      [`GET /v1/sessions?offset=${key}&api_key=${key}`],
      [`GET /v1/sessions/${key}`],
      [`GET /v1/nowhere/${key}`],
      [`GET /%zz/${key}`],
      [`GET /v1/organizations/${key}`],
      [`PATCH ${base}/api-keys/${key}`, { body: { name: 'x' } }],
      [`DELETE ${base}/api-keys/${key}`],
      [`POST ${base}/api-keys/${key}/rotations`],
      [`POST ${base}/api-keys`, { body: { name: 'x', scopes: [key], [key]: key } }],
      [`POST ${base}/api-keys`, { body: { name: 1, environment: key } }],
      [`POST ${base}/api-keys`, { body: `{"name": "${key}` }],
      [`POST ${base}/api-keys`, named(`${key}é`)],
      [`POST ${base}/api-keys`, named(key)],
      ['POST /v1/organizations', { body: { name: 'x', slug: key } }],
      [`POST ${base}/webhooks/endpoints`, { body: endpoint }],
      [`PATCH ${base}/webhooks/endpoints/${key}`, { body: { name: 'x', [key]: key } }],
      [`POST ${base}/webhooks/endpoints/${key}/test`],
      [`GET ${base}/events/${key}`],
      [`GET ${base}/events?type=${key}&endpoint_id=${key}`],
      ['POST /v2/collect/sessions', { key, body: collect }],
      ['POST /v2/collect/sessions', { key: live.publishable_key, body: collect }],
      ['POST /v1/sessions', { headers: { 'content-type': key, 'x-request-id': key, cookie: key } }],
    ]
    for (const [line, request] of requests) {
      const { status, text } = await send(line, request)
      if (status < 400 || status >= 500)
        throw new Error(`misplaced key ${refused}: ${status} ${text}`)
      refused++
    }
    await rawRequest(server, `GET / ${key} HTTP/1.1\r\nX-Key: ${key}\r\n\r\n`)
  }
  await send(`GET /v1/sessions?search=${wrong}`)
  return refused
}

async function rawRequest({ baseUrl }: RunningTidegate, request: string): Promise<string> {
  const { hostname, port } = new URL(baseUrl)
  const socket = connect(Number(port), hostname)
  socket.end(request)
  return text(socket)
}

/** Three documents through the collect protocol: a session, the same one resumed, and a visitor who comes back. */
export async function collectSessions(
  server: RunningTidegate,
  secrets: KnownSecrets,
): Promise<string> {
  const first = await visit(server, secrets, {})
  await visit(server, secrets, { resumeToken: first.resumeToken })
  const back = await visit(server, secrets, { continuity: first.continuity, cookie: first.cookie })
  const clientUser = `customer-${hex()}@shop.example`
  secrets.add('a client user id', clientUser, storedOnly)
  const send = sender(server)
  const path = `/v1/sessions/${back.sessionId}`
  dataOf(await send(`PATCH ${path}`, { body: { client_user_id: clientUser } }))
  const search = `/v1/sessions?search=${encodeURIComponent(clientUser)}`
  for (const one of [path, search, '/v1/fingerprints']) dataOf(await send(`GET ${one}`))
  return back.sessionId
}

type Visit = Pick<CollectClientOptions, 'resumeToken' | 'continuity'> & {
  cookie?: string | undefined
}

async function visit(server: RunningTidegate, secrets: KnownSecrets, { cookie, ...known }: Visit) {
  const plan = planSession('secrets', 3, { ...webOnlyMix, bots: 0, returning: 0 })
  const [password, query, typed, address] = [hex(), hex(), hex(), `203.0.113.${randomBytes(1)[0]}`]
  secrets.add('the password in a page URL', password)
  secrets.add('the query of a page URL', query, storedOnly)
  secrets.add('a value in a field that nobody asked for', typed, batchesOnly)
  secrets.add("the visitor's address", address, storedOnly)
  let setCookie = ''
  const checked = await validatingFetch(server.baseUrl)
  const client = createCollectClient({
    endpoint: server.baseUrl,
    publishableKey: server.credentials.live.publishable_key,
    sdk: plan.sdk,
    page: { url: `https://me:${password}@shop.example/cart?q=${query}` },
    headers: { ...headersOf(plan), 'X-Forwarded-For': address, ...(cookie && { Cookie: cookie }) },
    fetch: async (url, request) => {
      const response = await checked(url, request)
      setCookie ||= response.headers.get('set-cookie') ?? ''
      const answer: unknown = await response.json()
      addTokens(secrets, answer)
      return { status: response.status, headers: response.headers, json: async () => answer }
    },
    ...known,
  })
  const { sessionId, resumeToken, challenge, timingNonce: timing_nonce } = await client.open()
  const [{ snapshot, ...batch }] = plan.batches
  if (!snapshot) throw new Error('the first batch has the snapshot')
  const navigator = { ...snapshot.navigator, vendor: markers.observed, typed }
  const proofs = { challenge, timing_nonce, canvas_challenge_hash: null }
  const ack = await client.sendBatch({ ...batch, snapshot: { ...snapshot, navigator, proofs } })
  await client.sendBatch(plan.closing)
  await client.requestResult(plan.closing)
  const pair = setCookie.split(';', 1)[0] ?? ''
  secrets.add('the continuity cookie', pair.slice(pair.indexOf('=') + 1))
  return { sessionId, resumeToken, continuity: ack.fingerprint?.state.id ?? '', cookie: pair }
}

const tokenNames = ['resumeToken', 'documentId', 'nonce', 'sealedToken', 'responseHmac']

/** Everything in a collect answer that somebody could act with. */
function addTokens(secrets: KnownSecrets, answer: unknown, within = ''): void {
  if (typeof answer !== 'object' || answer === null) return
  for (const [name, value] of Object.entries(answer)) {
    const isContinuity = within === 'state' && name === 'id'
    if (typeof value === 'string' && (isContinuity || tokenNames.includes(name))) {
      secrets.add(isContinuity ? 'a continuity token' : `${name} of the collect protocol`, value)
    }
    addTokens(secrets, value, name)
  }
}
