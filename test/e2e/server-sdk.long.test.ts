import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import {
  clientDescription,
  descriptionDigest,
} from '../../services/web/server-sdk/types/description.ts'
import { tokenCases, webhookCases } from '../services/web/server-sdk/cases.ts'
import { serveLocally } from '../support/local-server.ts'
import { needs } from '../support/needs.ts'
import { nodeProgram } from '../support/node-versions.ts'
import { installThere, runThere } from '../support/packed.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/test-projects.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const folder = temporaryFolder('server-sdk')
let tidegate: RunningTidegate
beforeAll(async () => {
  // The packages are built from a clone.
  tidegate = await startTidegate({ env: { FROM_SOURCE: '1' } })
}, 60_000)
afterAll(() => tidegate?.stop())

const binding = 'form 1'

/** Returns the token of a new session. */
async function handOff(): Promise<string> {
  const client = createCollectClient({
    endpoint: tidegate.baseUrl,
    publishableKey: tidegate.credentials.live.publishable_key,
    sdk: { name: 'test', version: '1', platform: 'web' },
    page: { url: 'https://shop.example/' },
    fetch,
  })
  await client.open()
  const hash = createHash('sha256').update(binding).digest('hex')
  const { sealedToken } = await client.requestResult({ version: 1, elapsed_ms: 1, binding: hash })
  return sealedToken
}

const environment = () => ({
  TIDEGATE_URL: tidegate.baseUrl,
  TIDEGATE_SECRET_KEY: tidegate.credentials.live.secret_key,
})

/** Prints what the SDK found out with a token and over REST; the same in both languages. */
const expected = {
  first: 'ok',
  again: 'already_used',
  other: 'wrong_binding',
  session: true,
  listed: 1,
  marked: 'bot',
  refused: [404, 'request.not_found'],
  down: null,
}

describe('@tidegate/server, installed from a running server', () => {
  const script = `
    import { ApiError, createClient, failClosed, failOpen, verifyToken } from '@tidegate/server'

    const url: string = process.env.TIDEGATE_URL ?? ''
    const secretKey: string = process.env.TIDEGATE_SECRET_KEY ?? ''
    const token: string = process.argv[2] ?? ''
    const ids = new Set<string>()
    const seen = (id: string) => ids.size === ids.add(id).size
    const reasonOf = async (binding: string) => {
      const result = await verifyToken(token, { secretKey, binding, seen })
      return result.ok ? 'ok' : result.reason
    }
    const other = await reasonOf('form 2')
    const first = await reasonOf('form 1')
    const again = await reasonOf('form 1')
    const result = await verifyToken(token, { secretKey })
    if (!result.ok) throw new Error(result.message)
    const id = result.session.session_id
    const client = createClient({ url, secretKey, whenUnavailable: failClosed })
    const session = (await client.sessions.get(id)).id === id
    let listed = 0
    for await (const one of client.sessions.list({ limit: 1, verdict: ['bot', 'inconclusive', 'human'] }))
      if (one.id === id) listed += 1
    const mark = await client.marks.create({ label: 'bot', session_ids: [id] })
    const refused = await client.visitors.get('vid_' + '0'.repeat(26)).catch((error: unknown) => {
      if (error instanceof ApiError) return [error.status, error.code]
      throw error
    })
    const nobody = createClient({ url: 'http://127.0.0.1:1', secretKey, whenUnavailable: failOpen, retries: 0 })
    const down = (await nobody.sessions.get(id)) ?? null
    console.log(JSON.stringify({ first, again, other, session, listed, marked: mark.label, refused, down }))`

  beforeAll(async () => {
    const types = ['typescript@5.9.3', '@types/node@26.6.7']
    await installThere(folder, `${tidegate.baseUrl}/sdk/server.tgz`, ...types)
    await writeFile(path.join(folder, 'use.ts'), script)
    const flags = ['--strict', '--target', 'es2022', '--module', 'nodenext', 'use.ts']
    await runThere({ folder }, 'npx', 'tsc', ...flags)
  }, 120_000)

  test.each(['20.20.2', process.versions.node])(
    'verifies a token and reads the API on Node %s',
    async (version) => {
      const program = await nodeProgram(version)
      const ran = await runThere({ folder, env: environment() }, program, 'use.js', await handOff())
      expect(JSON.parse(ran.stdout)).toEqual(expected)
    },
    120_000,
  )

  test('is listed with its integrity, and is the same bytes each time', async () => {
    const page = await (await fetch(`${tidegate.baseUrl}/sdk`)).text()
    for (const name of ['server', 'browser', 'tidegate']) {
      const file = await fetch(`${tidegate.baseUrl}/sdk/${name}.tgz`)
      const bytes = Buffer.from(await file.arrayBuffer())
      expect(page).toContain(`sha512-${createHash('sha512').update(bytes).digest('base64')}`)
      expect(page).toContain(`npm install ${tidegate.baseUrl}/sdk/${name}.tgz`)
      const etag = file.headers.get('etag') ?? ''
      const headers = { 'if-none-match': etag }
      expect((await fetch(`${tidegate.baseUrl}/sdk/${name}.tgz`, { headers })).status).toBe(304)
    }
  }, 120_000)
})

test('the types are those of the present API', async () => {
  const description = await (await fetch(`${tidegate.baseUrl}/openapi.json`)).json()
  const digest = descriptionDigest(clientDescription(description))
  const types = await readFile(path.join(root, 'services/web/server-sdk/api.ts'), 'utf8')
  expect(types.split('\n')[0], 'run make sdk-types').toContain(digest)
})

needs('python-cryptography').describe('tidegate_server.py', () => {
  const env = () => ({
    ...environment(),
    PYTHONPATH: path.join(root, 'services/web/server-sdk/python'),
    PYTHONDONTWRITEBYTECODE: '1',
  })
  async function python(script: string, ...args: string[]) {
    await writeFile(path.join(folder, 'use.py'), script)
    const { stdout } = await runThere({ folder, env: env() }, 'python3', 'use.py', ...args)
    return JSON.parse(stdout)
  }

  test('takes and refuses the tokens and webhooks that the other one does', async () => {
    const [tokens, webhooks] = [tokenCases(), webhookCases()]
    await writeFile(path.join(folder, 'cases.json'), JSON.stringify({ tokens, webhooks }))
    const found = await python(`
import json
from tidegate_server import verify_token, verify_webhook, WebhookError
cases = json.load(open("cases.json"))
def told(case):
    result = verify_token(case.get("token"), secret_key=case["secretKey"], max_age=case.get("maxAge", 300),
                          now=case["now"] / 1000, **({"binding": case["binding"]} if "binding" in case else {}))
    return result.session["decision"]["event_id"] if result.ok else result.reason
def genuine(case):
    try:
        verify_webhook(case["body"].encode(), case["headers"], case["secrets"], now=case["now"] / 1000)
        return True
    except WebhookError:
        return False
print(json.dumps({"tokens": [told(c) for c in cases["tokens"]], "webhooks": [genuine(c) for c in cases["webhooks"]]}))`)
    const named = <T>(cases: { name: string }[], results: T[]) =>
      cases.map(({ name }, i) => [name, results[i]])
    expect(named(tokens, found.tokens)).toEqual(tokens.map((one) => [one.name, one.expected]))
    expect(named(webhooks, found.webhooks)).toEqual(
      webhooks.map((one) => [one.name, one.isGenuine]),
    )
  }, 60_000)

  test('verifies a token and reads the API', async () => {
    const found = await python(
      `
import json, os, sys
from tidegate_server import ApiError, Client, fail_closed, fail_open, verify_token
url, key, token = os.environ["TIDEGATE_URL"], os.environ["TIDEGATE_SECRET_KEY"], sys.argv[1]
ids = set()
def seen(id, ttl):
    was = id in ids
    ids.add(id)
    return was
def reason(binding):
    result = verify_token(token, secret_key=key, binding=binding, seen=seen)
    return "ok" if result.ok else result.reason
other, first, again = reason("form 2"), reason("form 1"), reason("form 1")
id = verify_token(token, secret_key=key).session["session_id"]
client = Client(url=url, secret_key=key, when_unavailable=fail_closed)
session = client.get_session(id)["id"] == id
listed = sum(one["id"] == id for one in client.list_sessions(limit=1, verdict=["bot", "inconclusive", "human"]))
mark = client.create_mark({"label": "bot", "session_ids": [id]})
try:
    client.get_visitor("vid_" + "0" * 26)
except ApiError as error:
    refused = [error.status, error.code]
down = Client(url="http://127.0.0.1:1", secret_key=key, when_unavailable=fail_open, retries=0).get_session(id)
print(json.dumps({"first": first, "again": again, "other": other, "session": session, "listed": listed,
                  "marked": mark["label"], "refused": refused, "down": down}))`,
      await handOff(),
    )
    expect(found).toEqual(expected)
  }, 60_000)

  test('names what the caller did wrong', async () => {
    const found = await python(`
import json
from tidegate_server import Client, fail_open, verify_webhook
def named(call):
    try:
        call()
        return "nothing"
    except TypeError as error:
        return str(error)
right = {"url": "http://127.0.0.1:1", "secret_key": "sk_live_x", "when_unavailable": fail_open}
headers = {"webhook-id": "a", "webhook-timestamp": "1", "webhook-signature": "v1,"}
print(json.dumps([
    *[named(lambda: verify_webhook(b"{}", headers, secret, now=1)) for secret in ("", "whsec_", "whsec_%")],
    *[named(lambda: Client(**{**right, **wrong})) for wrong in (
        {"url": "htp://a"}, {"url": "https://u:p@a"}, {"secret_key": "sk_live_x\\n"}, {"timeout": float("nan")})],
    named(lambda: Client(**right).get_session("é")),
]))`)
    const expected = [
      ...Array(3).fill('secret must be'),
      ...Array(2).fill('url must be http'),
      'secret_key must be',
      'timeout must be',
      'not an id',
    ]
    expect(found).toEqual(expected.map((text) => expect.stringContaining(text)))
  }, 60_000)

  test('retries as the server asks, a command under the same key', async () => {
    const keys: unknown[] = []
    const server = await serveLocally((request, response) => {
      keys.push(request.headers['idempotency-key'])
      // A proxy's error, an answer that breaks off, and a command that is still under way.
      const answers: [number, string][] = [
        [503, '{"error":"Bad gateway"}'],
        [200, '{"da'],
        [409, '{"error":{"retryable":true}}'],
        [201, '{"data":{"id":"mrk_1"}}'],
      ]
      const [status, body] = answers[keys.length - 1] ?? [500, '']
      response.writeHead(status, { 'retry-after': '0', 'content-length': Math.max(body.length, 9) })
      if (status === 200) response.write(body, () => response.destroy())
      else response.end(body)
    })
    const found = await python(
      `
import json, sys
from tidegate_server import Client, fail_closed
print(json.dumps(Client(url=sys.argv[1], secret_key="sk_live_x", when_unavailable=fail_closed, retries=3).create_mark({})))`,
      server.url,
    ).finally(() => server.close())
    expect(found).toEqual({ id: 'mrk_1' })
    expect([keys.length, new Set(keys).size]).toEqual([4, 1])
  }, 60_000)
})
