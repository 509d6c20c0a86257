import { once } from 'node:events'
import { globSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { observationsSchema } from '../../schemas/observations.ts'
import { scoreExplanationSchema } from '../../services/readback/schemas/score.ts'
import { readAttestedApps } from '../../services/scoring/attestation/apps.ts'
import { createGoogle } from '../support/attestation.ts'
import { openBrowser } from '../support/chromium.ts'
import { codeBlock, docs } from '../support/code-block.ts'
import { needs } from '../support/needs.ts'
import { installThere, runThere } from '../support/packed.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const folder = temporaryFolder('guide-blocks')
let tidegate: RunningTidegate
let site: Server
let signup: { sealedToken: string; sessionId: string }

/** Returns a block as its reader has it, with the server and key of the test. */
async function blockOf(page: string, label: string): Promise<string> {
  const code = await codeBlock(page, label)
  return code
    .replaceAll('https://tidegate.example', tidegate.baseUrl)
    .replaceAll('pk_live_...', tidegate.credentials.live.publishable_key)
}

/** Runs a block of TypeScript inside a function, and returns the JSON value that it ends with. */
async function runBlock(label: string, program: { page: string; given: string; result: string }) {
  const code = await blockOf(program.page, label)
  const imports = code.match(/^import .*$/gm) ?? []
  const body = code.replaceAll(/^import .*$/gm, '')
  const lines = [
    ...imports,
    program.given,
    `async function run() {\n${body}\n${program.result}\n}`,
    'console.log(JSON.stringify([await run(), await run()]))',
  ]
  const file = path.join(folder, `${label.replace(/\W+/g, '-')}.ts`)
  await writeFile(file, lines.join('\n'))
  const { stdout } = await runThere({ folder }, 'node', file)
  return stdout.trim().split('\n')
}

needs('chromium').describe('the blocks of the guides', () => {
  beforeAll(async () => {
    tidegate = await startTidegate({ env: { FROM_SOURCE: '1' } })
    await installThere(folder, `${tidegate.baseUrl}/sdk/server.tgz`)
    const page = `<!doctype html><form><button>Sign up</button></form>${await blockOf('guide/browser-sdk.md', 'sdk: page')}`
    site = createServer((_, response) => {
      response.setHeader('content-type', 'text/html').end(page)
    })
    site.listen(0, '127.0.0.1')
    await once(site, 'listening')
    const posted = new Promise<string>((resolve) => {
      site.on('request', (request) => {
        if (request.method === 'POST') resolve(text(request))
      })
    })
    await using browser = await openBrowser()
    await browser.page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}`)
    await browser.page.click('button')
    const { sealedToken } = JSON.parse(await posted)
    const { data } = await read('/v1/sessions?limit=1')
    signup = { sealedToken, sessionId: data[0].id }
  }, 120_000)
  afterAll(async () => {
    site?.close()
    await tidegate?.stop()
  }, 60_000)

  const headers = () => ({
    authorization: `Bearer ${tidegate.credentials.live.secret_key}`,
    'content-type': 'application/json',
  })
  async function read(url: string) {
    const response = await fetch(`${tidegate.baseUrl}${url}`, { headers: headers() })
    return response.json()
  }

  test('verify the token of the page, once', async () => {
    const lines = await runBlock('server: verify', {
      page: 'guide/server.md',
      given: `const secretKey = ${JSON.stringify(tidegate.credentials.live.secret_key)}
const body = ${JSON.stringify(signup)}
const ids = new Set()
const redis = {
  async set(id, value, { NX, EX }) {
    if (!NX || !(EX > 0)) throw new Error('not atomic')
    if (ids.has(id)) return null
    ids.add(id)
    return 'OK'
  },
}
const deny = (reason) => reason`,
      result: 'return verdict',
    })
    expect(lines).toEqual([JSON.stringify(['bot', 'already_used'])])
  })

  test('read sessions with the client', async () => {
    const lines = await runBlock('server: client', {
      page: 'guide/server.md',
      given: `const url = ${JSON.stringify(tidegate.baseUrl)}
const secretKey = ${JSON.stringify(tidegate.credentials.live.secret_key)}
const sessionId = ${JSON.stringify(signup.sessionId)}
const since = new Date(Date.now() - 3_600_000).toISOString()`,
      result: 'return session.decision.automation_status',
    })
    const { sessionId } = signup
    expect(lines).toEqual([sessionId, sessionId, JSON.stringify(['automated', 'automated'])])
  })

  test('verify a webhook, and refuse a changed one', async () => {
    const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
    const rawBody = JSON.stringify({ id: 'evt_1', type: 'webhook.test', data: {} })
    const at = new Date()
    const sent = {
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign('evt_1', at, rawBody),
    }
    const program = (body: string) => ({
      page: 'guide/webhooks.md',
      given: `const secret = ${JSON.stringify(secret)}
const rawBody = ${JSON.stringify(body)}
const request = { headers: ${JSON.stringify(sent)} }`,
      result: 'return event.type',
    })
    const lines = await runBlock('verify: typescript', program(rawBody))
    expect(lines).toEqual([JSON.stringify(['webhook.test', 'webhook.test'])])
    await expect(runBlock('verify: typescript', program(`${rawBody} `))).rejects.toThrow(
      'WebhookError',
    )
  })

  test('filter the events of an endpoint', async () => {
    const { filter } = JSON.parse(await blockOf('guide/webhooks.md', 'endpoint: filter'))
    const response = await fetch(
      `${tidegate.baseUrl}/v1/organizations/${tidegate.credentials.organization_id}/webhooks/endpoints`,
      {
        method: 'POST',
        headers: { ...headers(), 'idempotency-key': 'filter' },
        body: JSON.stringify({
          name: 'Bots',
          url: 'https://hooks.example.com/bots',
          event_types: ['session.result.persisted'],
          filter,
        }),
      },
    )
    expect(response.status).toBe(201)
    expect((await response.json()).data.filter).toEqual(filter)
  })

  test('mark a session', async () => {
    const body = await blockOf('guide/server.md', 'server: mark')
    const [printed] = /sid_\w+/.exec(body) ?? []
    const response = await fetch(`${tidegate.baseUrl}/v1/marks`, {
      method: 'POST',
      headers: { ...headers(), 'idempotency-key': 'guide' },
      body: body.replace(printed ?? '', signup.sessionId),
    })
    expect(response.status).toBe(201)
    const { data } = await read('/v1/sessions?mark=bot')
    expect(data.map(({ id }: { id: string }) => id)).toEqual([signup.sessionId])
  })
})

test("an app's attestation, the file of attested apps, and the steps of a score are valid as printed", async () => {
  const attestation = JSON.parse(await codeBlock('guide/native.md', 'attestation'))
  expect(observationsSchema.parse(attestation)).toMatchObject(attestation)
  const { decryption_key, verification_key } = createGoogle()
  const file = await codeBlock('guide/native.md', 'attested apps')
  const { apps } = readAttestedApps(
    file
      .replaceAll('org_...', 'org_1')
      .replace('"decryption_key": "base64"', `"decryption_key": "${decryption_key}"`)
      .replace('"verification_key": "base64"', `"verification_key": "${verification_key}"`),
  )
  expect(apps.map(({ platform }) => platform)).toEqual(['ios', 'android'])
  const steps = JSON.parse(await codeBlock('guide/scoring.md', 'score steps'))
  scoreExplanationSchema.parse({ steps, without_effect: [], signals: [] })
})

test('every block of the guides that a program reads is run by a test', async () => {
  const unlabelled: string[] = []
  for (const page of globSync('guide/*.md', { cwd: docs })) {
    const source = await readFile(path.join(docs, page), 'utf8')
    for (const [, before = '', language = ''] of source.matchAll(/([^\n]*)\n+ *```(\w+)\n/g))
      if (!['sh', 'bash'].includes(language) && !before.startsWith('<!-- '))
        unlabelled.push(`${page} ${language}: ${before}`)
  }
  expect(unlabelled).toEqual([])
})
