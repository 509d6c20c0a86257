import { execFile } from 'node:child_process'
import type { ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeBlock } from '../support/code-block.ts'
import { type Edge, edges, type SeenBehind } from '../support/edges.ts'
import { eventually } from '../support/eventually.ts'
import { type LocalServer, serveLocally } from '../support/local-server.ts'
import { needs } from '../support/needs.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const byProgram = { 'user-agent': 'curl/8.5.0' }
const byBrowser = {
  'user-agent':
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
}

let tidegate: RunningTidegate
let app: LocalServer
beforeAll(async () => {
  tidegate = await startTidegate()
  app = await serveLocally(async (received, response) => {
    const seen: SeenBehind = {
      verdict: received.headers['x-tidegate-verdict']?.toString() ?? null,
      method: received.method ?? '',
      path: received.url ?? '',
      body: await text(received),
    }
    response.end(JSON.stringify(seen))
  })
}, 180_000)
afterAll(async () => {
  app?.close()
  await tidegate?.stop()
})

test('the curl of the page works after make run as it stands there', async () => {
  const command = await codeBlock('guide/requests.md', 'request: curl')
  const here = command
    .replace('http://127.0.0.1:8787', tidegate.baseUrl)
    .replace('.tidegate', tidegate.dataDir)
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', here])
  const answer = JSON.parse(await codeBlock('guide/requests.md', 'request: answer'))
  expect(JSON.parse(stdout)).toEqual({
    ...answer,
    meta: { request_id: expect.stringMatching(/^req_/) },
  })
}, 30_000)

const { describe: describeNginx } = needs('nginx-njs')

for (const [name, start] of Object.entries(edges)) {
  const describeEdge = name === 'nginx' ? describeNginx : describe
  describeEdge(`${name} with the recipe of the page`, () => {
    let service: FaultyService
    let edge: Edge
    beforeAll(async () => {
      service = await faultyService(tidegate.baseUrl)
      const secretKey = tidegate.credentials.live.secret_key
      edge = await start({ tidegateUrl: service.url, appUrl: app.url, secretKey })
    }, 180_000)
    afterAll(async () => {
      await edge?.stop()
      service?.close()
    })

    /** On a busy machine the verdict may come later than the edge waits for it. */
    const judged = (headers: Record<string, string>, expected: string) =>
      eventually(async () => expect((await edge.send('/', { headers })).verdict).toBe(expected))

    test('tells the program behind what asks', async () => {
      await judged(byProgram, 'bot')
      await judged(byBrowser, 'inconclusive')
    })

    test('passes on what was asked as it came, but for a verdict of the client', async () => {
      service.mode = 'is silent'
      const headers = { ...byProgram, 'content-type': 'text/plain', 'x-tidegate-verdict': 'human' }
      const body = 'q=1'
      const seen = await edge.send('/a%20b?q=%22', { headers, body })
      expect(seen).toEqual({ verdict: null, method: 'POST', path: '/a%20b?q=%22', body })
    })

    test('keeps cookies and credentials to itself', async () => {
      service.mode = 'answers'
      await judged({ ...byProgram, cookie: 'a=hidden', authorization: 'Bearer hidden' }, 'bot')
      expect(service.asked.at(-1)).toContain('curl/8.5.0')
      expect(service.asked.join()).not.toContain('hidden')
    })

    test.each([
      'is silent',
      'stops midway',
      'sends a little at a time',
      'hangs up',
      'answers 503',
    ] as const)(
      'lets requests through where the service %s, and goes on after it',
      async (mode) => {
        service.mode = mode
        const before = service.asked.length
        expect((await edge.send('/', { headers: byProgram })).verdict).toBeNull()
        expect(service.asked.length).toBe(before + 1)
        service.mode = 'answers'
        await judged(byProgram, 'bot')
      },
    )

    test('lets requests through where the service is away, and says what happened', async () => {
      service.close()
      expect((await edge.send('/', { headers: byProgram })).verdict).toBeNull()
      await eventually(() => expect(edge.output()).toContain('tidegate did not answer: status 503'))
    })
  })
}

type Mode = keyof typeof faults | 'answers'

const faults = {
  'is silent': () => {},
  'stops midway': (response: ServerResponse) => {
    response.writeHead(200, { 'content-length': 1000 }).write('{"data":[{')
  },
  'sends a little at a time': (response: ServerResponse) => {
    response.writeHead(200, { 'content-length': 100_000 })
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(timer))
  },
  'hangs up': (response: ServerResponse) => void response.destroy(),
  'answers 503': (response: ServerResponse) => void response.writeHead(503).end('{}'),
}

type FaultyService = Awaited<ReturnType<typeof faultyService>>

/** Passes requests on to the service, unless `mode` says otherwise. */
async function faultyService(target: string) {
  const service = { mode: 'answers' as Mode, asked: [] as string[] }
  const server = await serveLocally(async (received, response) => {
    const body = await text(received)
    service.asked.push(body)
    if (service.mode !== 'answers') return faults[service.mode](response)
    const { authorization = '', 'content-type': type = '' } = received.headers
    const headers = { authorization, 'content-type': type }
    const answer = await request(`${target}${received.url}`, { method: 'POST', headers, body })
    response
      .writeHead(answer.statusCode, { 'content-type': 'application/json' })
      .end(await answer.body.text())
  })
  return Object.assign(service, server)
}
