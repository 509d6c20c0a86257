import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { parseEnv } from 'node:util'
import type pg from 'pg'
import { afterAll, beforeAll, expect } from 'vitest'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { createProfile, type Profile } from '../support/chromium.ts'
import type { CliResult } from '../support/cli.ts'
import { followCli } from '../support/cli-lines.ts'
import { dumpDatabase, dumpDatabaseFiles, dumpWal, walPosition } from '../support/dump.ts'
import { eventually } from '../support/eventually.ts'
import { createNumbers, movePointer, pause, pressKey } from '../support/hand.ts'
import { serveLocally } from '../support/local-server.ts'
import { needs } from '../support/needs.ts'
import { createScanner, type Secret } from '../support/secret-scan.ts'
import { countsForChromium, teachChromium } from '../support/teach.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'
import { type Desktop, openDesktop } from '../support/window.ts'
import { openDump } from './gate-dump-scan.ts'

const { describe, it } = needs('chromium', 'desktop')

const seed = Date.now()
console.log(`seed ${seed}`)
const next = createNumbers(seed)

const accountName = `Ada's <b>agents</b> & co`

interface Exchange {
  method: string
  path: string
  authorization: string
  sent: string
  answered: string
}

/** Starts a proxy between agent and server that records all requests and delays the acknowledgement. */
async function startProxy(target: string) {
  const exchanges: Exchange[] = []
  const { promise: acknowledging, resolve: onAcknowledgement } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const server = await serveLocally(async (request, response) => {
    const { method = '', url = '', headers } = request
    const sent = await text(request)
    if (url.endsWith('/ack')) {
      onAcknowledgement()
      await released
    }
    const kept = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
      typeof value === 'string' && /^(authorization|content-type|idempotency-key)$/.test(name)
        ? [[name, value]]
        : [],
    )
    const answer = await fetch(target + url, { method, headers: kept, ...(sent && { body: sent }) })
    const answered = await answer.text()
    exchanges.push({
      method,
      path: url,
      authorization: headers.authorization ?? '',
      sent,
      answered,
    })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answered)
  })
  return { ...server, exchanges, acknowledging, release }
}

const jsonIn = (line: string) => JSON.parse(line)

describe('the whole flow: an agent signs up, a person approves in a browser, credentials arrive', () => {
  const folder = temporaryFolder('gate')
  let tidegate: RunningTidegate
  let pool: pg.Pool
  let desktop: Desktop
  let profile: Profile
  let proxy: Awaited<ReturnType<typeof startProxy>>
  let integrator: ReturnType<typeof followCli>
  const outputs: CliResult[] = []

  beforeAll(async () => {
    tidegate = await startTidegate()
    // This person approves by keyboard, which proves nothing before the engine is learned.
    await teachChromium(tidegate.dataDir)
    await countsForChromium(tidegate)
    pool = createPool({ url: await setting('database-url') })
    desktop = await openDesktop()
    profile = await createProfile()
    proxy = await startProxy(tidegate.baseUrl)
    integrator = followCli(['gate', 'dev-integrator'], { DATA_DIR: tidegate.dataDir })
    await integrator.line(/is listening on/)
  }, 120_000)
  afterAll(async () => {
    integrator?.end()
    proxy?.close()
    await integrator?.result
    await desktop?.close()
    await profile?.remove()
    await pool?.end()
    await tidegate?.stop()
  })

  const envFile = () => path.join(folder, '.env')
  const variables = async () => parseEnv(await readFile(envFile(), 'utf8'))
  const signup = (...args: string[]) =>
    followCli(['signup', 'demo-service', ...args, '--env-file', envFile(), '--json'], {
      TIDEGATE_URL: proxy.url,
      DATA_DIR: folder,
    })
  const setting = async (file: string) =>
    (await readFile(path.join(tidegate.dataDir, file), 'utf8')).trim()
  const dump = async () => {
    const places = await dumpDatabase(await setting('database-url'))
    const opened = await openDump(places, createKeyring(await setting('master-keys')))
    return { places, opened }
  }
  /** Finds secrets in Postgres's files, and in its WAL since then. vault.test.ts looks there for a signup's own key. */
  const onDisk = async (secrets: Secret[], since: string) => {
    const { scan } = createScanner(secrets)
    return [...(await dumpWal(pool, since)), ...(await dumpDatabaseFiles(pool))].flatMap(scan)
  }
  const findingsOf = async (secrets: Secret[]) => {
    const { places, opened } = await dump()
    const scanner = createScanner(secrets)
    const found = [...places, ...opened].flatMap((place) => scanner.scan(place))
    return { found: found.map(({ secret, place }) => `${secret}: ${place}`), opened }
  }

  it('signs up', async () => {
    const since = await walPosition(pool)
    const about = ['--account-name', accountName, '--metadata', 'plan=free']
    const agent = signup(...about, '--timeout', '60')
    const asked = jsonIn(await agent.line(/consent_required/))
    expect(asked).toMatchObject({
      service_id: 'demo-service',
      account_name: accountName,
      confirmation_code: expect.stringMatching(/^\w\w-\w{3}$/),
    })
    await approve(asked.consent_url)

    const ended = agent.result.then(({ stdout }) => Promise.reject(new Error(stdout)))
    await Promise.race([proxy.acknowledging, ended])
    // Durable before anything is acknowledged.
    const values = await variables()
    const names = [
      'DEMO_SERVICE_ACCOUNT_ID',
      'DEMO_SERVICE_API_KEY',
      'DEMO_SERVICE_GATE_AGENT_TOKEN',
    ]
    expect(Object.keys(values).toSorted()).toEqual(names)
    expect((await stat(envFile())).mode & 0o777).toBe(0o600)
    const secrets = carried(proxy.exchanges, values)
    const before = await findingsOf(secrets)
    // Only with the signup's own key, which the server has as long as it has to deliver.
    expect(before.opened.map(({ purpose }) => purpose)).toContain('data key')
    for (const envelope of ['the envelope integrator', 'the envelope gate'])
      expect(before.found).toContainEqual(
        expect.stringMatching(`^${envelope}: .* under a data key`),
      )
    expect(before.found.filter((finding) => !finding.includes('under a data key'))).toEqual([])
    expect(await onDisk(secrets, since)).toEqual([])

    proxy.release()
    const result = await agent.result
    outputs.push(result)
    expect(result.code, result.stderr).toBe(0)
    const approved = jsonIn(await agent.line(/"approved"/))
    expect(approved).toMatchObject({
      service_id: 'demo-service',
      gate_account_id: values.DEMO_SERVICE_ACCOUNT_ID,
      account_name: accountName,
      env_file: envFile(),
      elsewhere: [],
      skipped: [],
      acknowledged: true,
    })
    expect(approved.keys.toSorted()).toEqual(names)

    const poll = proxy.exchanges.find(({ path: place }) => place.endsWith(asked.gate_session_id))
    const again = await fetch(proxy.url + poll?.path, {
      headers: { authorization: poll?.authorization ?? '' },
    })
    expect([again.status, JSON.parse(await again.text()).error.code]).toEqual([
      410,
      'gate.delivery_consumed',
    ])
    const after = await findingsOf([...secrets, ackToken(proxy.exchanges)])
    expect(after.found).toEqual([])
    expect(after.opened.map(({ purpose }) => purpose)).not.toContain('data key')
    expect(await onDisk([...secrets, ackToken(proxy.exchanges)], since)).toEqual([])
    // The scan still decrypts other values, such as the endpoint's signing secret.
    expect(after.opened.map(({ purpose }) => purpose)).toContain('webhook-signing-secret')
  }, 120_000)

  it('is refused for a file that is there already, before anything is created', async () => {
    const result = await signup().result
    outputs.push(result)
    expect(result).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/already exists. No account was requested/),
    })
    const created = proxy.exchanges.filter(
      ({ method, path: place }) => method === 'POST' && place.endsWith('/sessions'),
    )
    expect(created).toHaveLength(1)
  })

  it('logs in to the dashboard', async () => {
    const agent = signup('login')
    const asked = jsonIn(await agent.line(/consent_required/))
    const result = await agent.result
    outputs.push(result)
    expect(result).toMatchObject({ code: 0, stderr: '' })
    await approve(asked.consent_url)
    const told = await integrator.line(/logged in/)
    expect(told).toContain(accountName)
    await eventually(() => desktop.input(['search', '--name', 'Logged in as Ada']), {
      timeoutMs: 10_000,
    })
  }, 60_000)

  it('shows no value that was delivered, to anyone', async () => {
    const values = Object.entries(await variables()).filter(
      ([name]) => !name.endsWith('_ACCOUNT_ID'),
    )
    const secrets = values.map(([name, value]): Secret => ({ name, value: value ?? '' }))
    const scanner = createScanner([...secrets, ackToken(proxy.exchanges)])
    const printed = [
      ...outputs.flatMap(({ stdout, stderr }) => [stdout, stderr]),
      integrator.lines.join('\n'),
      tidegate.output(),
    ]
    const findings = printed.flatMap((one) =>
      scanner.scan({ name: 'output', bytes: Buffer.from(one) }),
    )
    expect([secrets.length, findings]).toEqual([2, []])
  })

  /** Beside the page's column, where nothing happens: Tab starts at its beginning. */
  const margin = { x: 160, y: 420 }
  /** The service's link, terms, privacy notice, Decline, Approve. */
  const tabs = 5

  /** As a person does who reads, and then uses the keyboard. */
  async function approve(url: string): Promise<void> {
    await openPage(url)
    await desktop.input([
      ...movePointer({ x: 1100, y: 320 }, { x: 700, y: 520 }, next),
      ...pause(500),
      ...movePointer({ x: 700, y: 520 }, margin, next),
      'mousedown',
      '1',
      ...pause(70),
      'mouseup',
      '1',
      ...pause(700),
      ...Array.from({ length: tabs }, () => [
        ...pressKey('Tab', next),
        ...pause(100 + next() * 200),
      ]).flat(),
      ...pressKey('Return', next),
    ])
  }

  async function openPage(url: string): Promise<void> {
    await desktop.openWindow(url, profile)
    const id = url.split('/').at(-1) ?? ''
    const open = async () => {
      const { places } = await dump()
      const pages = places.find(({ name }) => name === 'table tidegate.gate_pages.gate_session_id')
      if (!pages?.bytes.includes(id)) throw new Error('the page was not opened')
    }
    await eventually(open, { timeoutMs: 40_000, intervalMs: 300 })
    await desktop.input(pause(1500))
  }
})

/** Returns the secrets that must not be left: the delivered envelopes and their contents. */
function carried(exchanges: Exchange[], values: Record<string, string | undefined>): Secret[] {
  const polled = exchanges
    .map(({ answered }) => jsonIn(answered).data)
    .find((data) => data?.delivery_bundle)
  const envelopes = Object.entries<{ ciphertext: string }>(polled.delivery_bundle)
  return [
    ...envelopes.map(([name, { ciphertext }]) => ({
      name: `the envelope ${name}`,
      value: Buffer.from(ciphertext, 'base64url'),
    })),
    { name: 'the API key', value: values.DEMO_SERVICE_API_KEY ?? '' },
    { name: 'the agent token', value: values.DEMO_SERVICE_GATE_AGENT_TOKEN ?? '' },
  ]
}

function ackToken(exchanges: Exchange[]): Secret {
  const sent = exchanges.find(({ path: place }) => place.endsWith('/ack'))?.sent ?? '{}'
  return { name: 'the ack token', value: jsonIn(sent).ack_token }
}
