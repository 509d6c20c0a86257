import { beforeEach, describe, expect, it } from 'vitest'
import { transaction } from '../../../../infra/postgres/pool.ts'
import { checkSignature } from '../../../../infra/wire/web-bot-auth/check.ts'
import type { DocumentSignature } from '../../../../schemas/events.ts'
import type { DecisionSources } from '../../../../services/scoring/decide.ts'
import { eraseScoringData } from '../../../../services/scoring/erase.ts'
import type { FetchOptions } from '../../../../services/scoring/identity/fetch.ts'
import { pendingLookups, resolveLookups } from '../../../../services/scoring/identity/outcomes.ts'
import { runAgentLookups } from '../../../../services/scoring/identity/run.ts'
import { endSessions } from '../../../../services/scoring/scheduler.ts'
import { agentSignature, createAgentKey } from '../../../support/agent-signature.ts'
import type { DnsReply } from '../../../support/dns-server.ts'
import { visitorErased } from '../../../support/erased.ts'
import { eventually } from '../../../support/eventually.ts'
import {
  batch,
  handOff,
  opened,
  organizationId,
  startedAt,
  type TestSession,
  testSession,
  visitOf,
} from '../support/events.ts'
import { asRecorded, useScoring } from '../support/scoring.ts'
import { desktopChrome, withParts } from '../support/snapshots.ts'
import {
  type DirectoryServer,
  type Reply,
  startDirectory,
  startReverseDns,
} from './directory-server.ts'

const key = createAgentKey()
const good: Reply = { body: JSON.stringify({ keys: [key.jwk] }) }
const minute = 60_000

const world = await useScoring()
let agent: DirectoryServer
let release: (reply: Reply) => void

/** Starts a directory that responds once `release` is called. */
beforeEach(async () => {
  const held = Promise.withResolvers<Reply>()
  release = held.resolve
  agent = await startDirectory(() => held.promise)
  world.stopLater(agent.close)
})

async function start(
  overrides: Partial<FetchOptions> = {},
  known: Pick<DecisionSources, 'findTrusted'> = {},
): Promise<void> {
  const lookups = runAgentLookups({ ...world.parts, ...agent.options, ...overrides })
  world.stopLater(lookups.stop)
  await world.start({ ...known, lookups })
}

const statusesOf = (name: string) =>
  world.decisions(testSession(name)).map(({ web_bot_auth }) => web_bot_auth?.status)

const storedLookups = async () =>
  (await world.pool.query('select subject from scoring.agent_lookups')).rows

interface Signing {
  nonce?: string
  request?: string
  by?: ReturnType<typeof createAgentKey>
}

/** A session whose opening the agent signed. */
function signed(
  name: string,
  { nonce = name, request = name, by = key }: Signing = {},
): TestSession {
  const named = `"${agent.origin}"`
  const lines: [string, string][] = [
    ['"@authority"', 'own.example'],
    ['"signature-agent"', named],
  ]
  const headers = agentSignature({ key: by, lines, created: startedAt / 1000, nonce })
  const rawHeaders = Object.entries({ ...headers, 'Signature-Agent': named }).flat()
  const checked = checkSignature(
    { method: 'POST', target: '/', rawHeaders },
    { baseUrls: ['https://own.example'], maxLifetimeMs: 60 * minute, now: startedAt },
  )
  if (checked?.status !== 'signed')
    throw new Error(`not as it should be: ${JSON.stringify(checked)}`)
  const { directory, keyId: key_id, bases, bytes, nonceHash: nonce_hash } = checked.signature
  const whole = { directory, key_id, bases, bytes: bytes.toString('base64'), nonce_hash }
  const request_hash = Buffer.from(request).toString('hex')
  const signed = { ...whole, request_hash }
  const signature: DocumentSignature = { status: 'signed', reason: null, signed }
  return testSession(name, { document: { signature, signature_agent: 'agent.example' } })
}

const hasLookedUp = () =>
  world.log.records.some(({ headers }) => headers.event_type === 'AgentLookedUp')

describe('a signature with an unfetched key', () => {
  it('is unknown_key, and is decided again once the directory responds', async () => {
    await start()
    const session = signed('first')
    await world.append(...visitOf(session))
    await world.append(handOff(session))
    await eventually(() => expect(statusesOf('first')).toEqual(['unknown_key', 'unknown_key']))
    release(good)
    await eventually(() =>
      expect(statusesOf('first')).toEqual(['unknown_key', 'unknown_key', 'verified']),
    )
    const [, before, after] = world.decisions()
    expect(before?.agent).toMatchObject({ status: 'declared', evidence: { reason: 'directory' } })
    expect(after?.agent).toMatchObject({
      status: 'signed',
      provider: 'agent.example',
      method: 'signature',
      evidence: { domain: 'agent.example', key_id: key.keyId, reason: null, fetched_at: world.now },
    })
    expect([before?.reason, after?.reason]).toEqual(['hand_off', 'looked_up'])
    expect(after).toMatchObject({
      is_provisional: false,
      hand_off: before?.hand_off,
      visitor: { id: before?.visitor?.id },
    })
    expect(agent.requests.length).toBe(1)
    expect(agent.questions.every((question) => question.endsWith('agent.example'))).toBe(true)
  })

  it('is not decided again if the directory responds before the first decision', async () => {
    await start()
    const session = signed('early')
    await world.append(...opened(session))
    release(good)
    await eventually(() => expect(hasLookedUp()).toBe(true))
    await world.append(batch(session))
    await eventually(() => expect(statusesOf('early')).toEqual(['verified']))
  })

  it('stays unknown if the directory is down, without another decision', async () => {
    await start()
    const session = signed('down')
    await world.append(...visitOf(session))
    release({ status: 503 })
    await eventually(async () => expect(await storedLookups()).toHaveLength(1))
    // The lookup starts with the opening, and may finish before the batch is scored.
    await eventually(() => expect(statusesOf('down')).toEqual(['unknown_key']))
    world.now += 41 * minute
    await eventually(async () => {
      await endSessions(world.parts)
      expect(statusesOf('down')).toEqual(['unknown_key', 'unknown_key'])
    })
  })
})

describe('a signature with a fetched key', () => {
  beforeEach(async () => {
    release(good)
    await start()
    const session = signed('before')
    await world.append(...visitOf(session))
    await eventually(() => expect(statusesOf('before').at(-1)).toBe('verified'))
  })

  async function statusOf(name: string, signing: Signing): Promise<string | null | undefined> {
    const session = signed(name, signing)
    await world.append(...visitOf(session))
    await eventually(() => expect(statusesOf(name).length).toBe(1))
    return statusesOf(name)[0]
  }

  it('is verified immediately, without another fetch', async () => {
    expect(await statusOf('second', {})).toBe('verified')
    expect(agent.requests.length).toBe(1)
  })

  it('is invalid if another request has used its nonce', async () => {
    expect(await statusOf('replay', { nonce: 'before' })).toBe('invalid')
    expect(await statusOf('again', { nonce: 'before' })).toBe('invalid')
  })

  it('is valid again for the same request', async () => {
    expect(await statusOf('repeat', { nonce: 'before', request: 'before' })).toBe('verified')
  })
})

it('a trusted directory verifies agents for its organization only, and only while it is trusted', async () => {
  release(good)
  let trusting = 'org_another'
  const findTrusted = (organization: string, domain: string) =>
    organization === trusting && domain === 'agent.example' ? { name: 'Acme' } : null
  await start({}, { findTrusted })
  const session = signed('trusted')
  const agents = () => world.decisions().map(({ agent: found }) => [found?.status, found?.provider])
  await world.append(...visitOf(session))
  await eventually(() => expect(agents().at(-1)).toEqual(['signed', 'agent.example']))
  trusting = organizationId
  await world.append(handOff(session))
  await eventually(() => expect(agents().at(-1)).toEqual(['verified', 'Acme']))
  trusting = 'org_another'
  await world.append(handOff(session, { seq: 3, at: startedAt + 2000 }))
  await eventually(() =>
    expect(agents().slice(-2)).toEqual([
      ['verified', 'Acme'],
      ['signed', 'agent.example'],
    ]),
  )
})

describe('a crawler verified by its host name', () => {
  // A network that was given back: documentation addresses are not looked up.
  const ip = '3ffe::1'
  const userAgent = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'
  const client = withParts(desktopChrome, { navigator: { user_agent: userAgent } })

  async function agentsAt(names: string[] | DnsReply): Promise<unknown[]> {
    const dns = await startReverseDns(names, { 'crawl-66-249-66-1.googlebot.com': [ip] })
    world.stopLater(dns.close)
    await start({ dnsServers: [dns.address] })
    const session = testSession('crawler', { client, ip })
    await world.append(...visitOf(session))
    await eventually(() => expect(world.decisions().length).toBe(2))
    return world
      .decisions()
      .map(({ agent: found }) => [found?.status, found?.method, found?.evidence?.host_name])
  }

  it('is declared until DNS responds, then verified', async () => {
    expect(await agentsAt(['crawl-66-249-66-1.googlebot.com'])).toEqual([
      ['declared', null, null],
      ['verified', 'reverse_dns', 'crawl-66-249-66-1.googlebot.com'],
    ])
  })

  it('leaves no address behind when its session is erased', async () => {
    await agentsAt(['crawl-66-249-66-1.googlebot.com'])
    const erase = (id: string) =>
      transaction(world.pool, (tx) => eraseScoringData(tx, [visitorErased([id])]))
    await erase(`sid_${'0'.repeat(26)}`)
    expect(await storedLookups()).toEqual([{ subject: ip }])
    await erase(testSession('crawler').id)
    expect(await storedLookups()).toEqual([])
  })

  it.each<[string, string[] | DnsReply]>([
    ['has no name', 'NXDOMAIN'],
    ['has a name that does not resolve back', ['crawl-66-249-66-2.googlebot.com']],
  ])('is spoofed if its address %s', async (_, names) => {
    expect(await agentsAt(names)).toEqual([
      ['declared', null, null],
      ['spoofed', 'reverse_dns', null],
    ])
  })
})

it('sessions without a signature cost no query', async () => {
  const pending = pendingLookups(asRecorded(...opened(testSession('plain'))), new Map())
  const noStatement = { query: () => Promise.reject(new Error('a statement')) }
  const found = await resolveLookups(noStatement, pending, world.now)
  expect(found).toEqual({ signatures: new Map(), hosts: new Map(), requests: [] })
})

// Without this, one client that names many agents would keep all others waiting (lookup-queue.test.ts).
it('a lookup counts against the organization and network source of its session', () => {
  const session = { ...signed('charged'), ip: '2a00:1:2:3::9' }
  const { signatures } = pendingLookups(asRecorded(...opened(session)), new Map())
  const source = '10752:1:2:3'
  expect(signatures).toMatchObject([
    { session: { session_id: session.id, organization_id: organizationId, source } },
  ])
})
