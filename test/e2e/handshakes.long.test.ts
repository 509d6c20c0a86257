import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect } from 'vitest'
import { chromiumFile } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import { needs } from '../support/needs.ts'
import { root } from '../support/test-projects.ts'
import { readClientHello } from '../support/tls/client-hello.ts'
import { ja4Of } from '../support/tls/ja4.ts'
import { startTlsRelay, startTlsServer, type TlsRelay } from '../support/tls-relay.ts'

const { describe, it } = needs('chromium', 'firefox', 'tshark', 'curl', 'python', 'go')

const fixtures = path.join(root, 'test/fixtures/tls-hellos')
let folder = ''
let server: Awaited<ReturnType<typeof startTlsServer>>

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'tidegate-hellos-'))
  server = await startTlsServer()
  // Go compiles its own library first, where nothing has been built yet.
  const client = path.join(folder, 'client')
  await promisify(execFile)('go', ['build', '-o', client, path.join(fixtures, 'client.go')])
}, 600_000)

afterAll(async () => {
  await server?.close()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})

const python = `
import ssl, sys, urllib.request
context = ssl._create_unverified_context()
urllib.request.urlopen(sys.argv[1], context=context).read()`
const fetchTwice = 'fetch(process.argv[1]).then(() => fetch(process.argv[1]))'

// Each asks for the page, whoever signed the certificate.
const clients: Record<string, (url: string) => [program: string, ...args: string[]]> = {
  curl: (url) => ['curl', '-sk', url, url],
  Python: (url) => ['python3', '-c', python, url],
  Node: (url) => [path.join(root, 'node_modules/.bin/node'), '-e', fetchTwice, url],
  Go: (url) => [path.join(folder, 'client'), url],
  Firefox: (url) => [
    'firefox-esr',
    '--headless',
    '--screenshot',
    path.join(folder, 'page.png'),
    url,
  ],
  Chromium: (url) => [
    ...([chromiumFile(), '--headless', '--no-sandbox', '--ignore-certificate-errors'] as const),
    '--disable-background-networking',
    `--user-data-dir=${path.join(folder, 'chromium')}`,
    url,
  ],
}

/** Runs the client until the relay has heard of it. */
async function helloOf(relay: TlsRelay, client: keyof typeof clients): Promise<Buffer[]> {
  const [program = '', ...args] = clients[client]?.(`https://localhost:${relay.port}/`) ?? []
  const env = { ...process.env, HOME: folder, NODE_TLS_REJECT_UNAUTHORIZED: '0' }
  const child = spawn(program, args, { env, stdio: 'ignore' })
  const ended = once(child, 'close')
  await eventually(() => expect(relay.hellos.length).toBeGreaterThan(0), { timeoutMs: 120_000 })
  child.kill()
  await ended
  return relay.hellos
}

const ownJa4 = (bytes: Buffer) => {
  const reading = readClientHello(bytes)
  return reading.state === 'complete' ? ja4Of(reading.hello) : reading.state
}

describe('hellos of real clients', () => {
  it.each(Object.keys(clients))(
    '%s has the JA4 that a computation over tshark gives',
    async (client) => {
      const relay = await startTlsRelay(server.port)
      try {
        const hellos = await helloOf(relay, client)
        const input = JSON.stringify(hellos.map((bytes) => bytes.toString('base64')))
        const expected = JSON.parse(
          execFileSync('python3', [path.join(fixtures, 'ja4.py')], { input }).toString(),
        )
        expect(hellos.map(ownJa4)).toEqual(expected)
      } finally {
        await relay.close()
      }
    },
    240_000,
  )
})
