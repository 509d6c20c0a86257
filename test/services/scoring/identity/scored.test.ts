import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createCodec } from '../../../../infra/event-store/codec.ts'
import { noNetwork } from '../../../../infra/ip/network.ts'
import { transaction } from '../../../../infra/postgres/pool.ts'
import { checkSignature } from '../../../../infra/wire/web-bot-auth/check.ts'
import type { DocumentSignature, SessionScored } from '../../../../schemas/events.ts'
import type { DecisionSources } from '../../../../services/scoring/decide.ts'
import { eraseStates } from '../../../../services/scoring/erase.ts'
import type { FetchOptions } from '../../../../services/scoring/identity/fetch.ts'
import { outcomesOf, pendingOf } from '../../../../services/scoring/identity/outcomes.ts'
import { runIdentity } from '../../../../services/scoring/identity/run.ts'
import { endSessions } from '../../../../services/scoring/scheduler.ts'
import type { SessionEvent } from '../../../../services/scoring/session/state.ts'
import { runScoring } from '../../../../services/scoring/worker.ts'
import { agentSignature, createAgentKey } from '../../../support/agent-signature.ts'
import type { DnsReply } from '../../../support/dns-server.ts'
import { visitorErased } from '../../../support/erased.ts'
import { eventually } from '../../../support/eventually.ts'
import { createMemoryDataKeys } from '../../../support/memory-data-keys.ts'
import { createMemoryLog, type MemoryLog } from '../../../support/memory-log.ts'
import { noSkips } from '../../../support/no-skips.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/postgres.ts'
import {
  batch,
  handOff,
  metaOf,
  opened,
  organizationId,
  startedAt,
  type TestSession,
  testSession,
} from '../support/events.ts'
import { desktopChrome, withParts } from '../support/snapshots.ts'
import { taught } from '../support/taught.ts'
import {
  type DirectoryServer,
  type Reply,
  startDirectory,
  startReverseDns,
} from './directory-server.ts'

const codec = createCodec()
const logger = pino({ level: 'silent' })
const key = createAgentKey()
const good: Reply = { body: JSON.stringify({ keys: [key.jwk] }) }
const minute = 60_000

let database: TestDatabase
let log: MemoryLog
let agent: DirectoryServer
let answer: Promise<Reply>
let release: (reply: Reply) => void
let now = startedAt
const clock = () => now
const stops: (() => Promise<void>)[] = []

beforeAll(async () => {
  database = await createTestDatabase()
})
beforeEach(async () => {
  now = startedAt
  log = createMemoryLog({ now: clock })
  await hold()
})
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
  await database.pool.query(`truncate scoring.offsets, scoring.sessions, scoring.visitors, scoring.links,
    scoring.visitor_keys, scoring.agent_lookups, scoring.used_nonces`)
})
afterAll(() => database.drop())

/** A directory that answers once `release` is called. */
async function hold(): Promise<void> {
  const held = Promise.withResolvers<Reply>()
  answer = held.promise
  release = held.resolve
  agent = await startDirectory(() => answer)
  stops.push(agent.close)
}

async function start(
  some: Partial<FetchOptions> = {},
  known: Pick<DecisionSources, 'findTrusted'> = {},
): Promise<void> {
  const parts = { log, pool: database.pool, codec, clock, logger }
  const lookups = runIdentity({ ...parts, ...agent.options, ...some })
  stops.push(lookups.stop)
  const worker = await runScoring({
    ...parts,
    ...known,
    lookups,
    learned: taught,
    dataKeys: createMemoryDataKeys(),
    network: noNetwork,
    applied: { waitFor: async () => {} },
    skips: noSkips,
  })
  stops.push(worker.stop)
}

const append = (...events: SessionEvent[]) =>
  log.append(events.map((event) => codec.toRecord(event, metaOf(event))))

function decisions(): SessionScored[] {
  return log.records
    .filter((record) => record.topic === 'tidegate.sessions.v1')
    .map((record) => codec.fromRecord(record))
    .flatMap((event) => (event.type === 'SessionScored' ? [event.data] : []))
}

const statusesOf = (name: string) =>
  decisions()
    .filter(({ session_id }) => session_id === testSession(name).id)
    .map(({ web_bot_auth }) => web_bot_auth?.status)

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
  const signature: DocumentSignature = {
    status: 'signed',
    reason: null,
    signed: { ...whole, request_hash },
  }
  return testSession(name, { signature, signatureAgent: 'agent.example' })
}

describe('a signature by a key that nobody has fetched', () => {
  it('is unknown_key, and has one more decision once the directory answers', async () => {
    await start()
    const session = signed('first')
    await append(...opened(session), batch(session), handOff(session))
    await eventually(() => expect(decisions().length).toBe(2))
    expect(statusesOf('first')).toEqual(['unknown_key', 'unknown_key'])
    release(good)
    await eventually(() =>
      expect(statusesOf('first')).toEqual(['unknown_key', 'unknown_key', 'verified']),
    )
    const [, before, after] = decisions()
    expect(before?.agent).toMatchObject({ status: 'declared', evidence: { reason: 'directory' } })
    expect(after?.agent).toMatchObject({
      status: 'signed',
      provider: 'agent.example',
      method: 'signature',
      evidence: { domain: 'agent.example', key_id: key.keyId, reason: null, fetched_at: now },
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

  it('whose directory answers before the first decision has no more decisions for that', async () => {
    await start()
    const session = signed('early')
    await append(...opened(session))
    release(good)
    await eventually(() => expect(log.records.some(isLookedUp)).toBe(true))
    await append(batch(session))
    await eventually(() => expect(statusesOf('early')).toEqual(['verified']))
  })

  it('stays unknown where the directory is down, without a further decision', async () => {
    await start()
    const session = signed('down')
    await append(...opened(session), batch(session))
    release({ status: 503 })
    await eventually(async () =>
      expect((await database.pool.query('select from scoring.agent_lookups')).rowCount).toBe(1),
    )
    // The look-up begins with the opening, and may have ended before the batch is scored.
    await eventually(() => expect(statusesOf('down')).toEqual(['unknown_key']))
    now += 31 * minute
    await eventually(async () => {
      await endSessions({ log, pool: database.pool, codec, clock, logger })
      expect(statusesOf('down')).toEqual(['unknown_key', 'unknown_key'])
    })
  })
})

const isLookedUp = ({ headers }: MemoryLog['records'][number]) =>
  headers.event_type === 'AgentLookedUp'

it.each<[string, (n: number) => Partial<TestSession>, Partial<TestSession>]>([
  ['one source leave one from another source', () => ({ ip: '198.51.100.7' }), { ip: '192.0.2.7' }],
  [
    'one organization leave one of another organization',
    (n) => ({ ip: `198.51.${n >> 8}.${n & 255}` }),
    { ip: '192.0.2.7', organizationId: 'org_another' },
  ],
])(
  '1,040 openings that name as many agents of %s verified',
  async (_, flooding, honest) => {
    release(good)
    await start()
    const template = signed('flood').signature?.signed
    if (!template) throw new Error('it is not signed')
    const names = Array.from(
      { length: 1040 },
      (_, n) => `https://a.flood${n}.example/.well-known/keys`,
    )
    const flood = names.flatMap((directory, n) => {
      const signature = {
        status: 'signed',
        reason: null,
        signed: { ...template, directory },
      } as const
      return opened(testSession(`flood${n}`, { signature, ...flooding(n) }))
    })
    await append(...flood)
    const session = { ...signed('source'), ...honest }
    await append(...opened(session), batch(session))
    await eventually(() => expect(statusesOf('source').at(-1)).toBe('verified'), {
      timeoutMs: 60_000,
    })
  },
  120_000,
)

describe('a signature by a known directory', () => {
  beforeEach(async () => {
    release(good)
    await start()
    const session = signed('before')
    await append(...opened(session), batch(session))
    await eventually(() => expect(statusesOf('before').at(-1)).toBe('verified'))
  })

  async function statusOf(name: string, signing: Signing): Promise<string | null | undefined> {
    const session = signed(name, signing)
    await append(...opened(session), batch(session))
    await eventually(() => expect(statusesOf(name).length).toBe(1))
    return statusesOf(name)[0]
  }

  it('is verified at once, and the directory is not fetched again', async () => {
    expect(await statusOf('second', {})).toBe('verified')
    expect(agent.requests.length).toBe(1)
  })

  it('is invalid with a nonce that another request has used', async () => {
    expect(await statusOf('replay', { nonce: 'before' })).toBe('invalid')
    expect(await statusOf('again', { nonce: 'before' })).toBe('invalid')
  })

  it('is the same request with the same body', async () => {
    expect(await statusOf('repeat', { nonce: 'before', request: 'before' })).toBe('verified')
  })

  it('is unknown_key by another key than the directory has', async () => {
    expect(await statusOf('other', { by: createAgentKey() })).toBe('unknown_key')
    expect(agent.requests.length).toBe(1)
  })

  it('is invalid where the key did not make it', async () => {
    const forged = signed('forged', { by: { ...createAgentKey(), keyId: key.keyId } })
    await append(...opened(forged), batch(forged))
    await eventually(() => expect(statusesOf('forged')).toEqual(['invalid']))
  })
})

describe('a directory that an organization trusts', () => {
  it('proves who the agent is to that one, for as long as it is on the list', async () => {
    release(good)
    let trusting = 'org_another'
    const findTrusted = (organization: string, domain: string) =>
      organization === trusting && domain === 'agent.example' ? { name: 'Acme' } : null
    await start({}, { findTrusted })
    const session = signed('trusted')
    const agents = () => decisions().map(({ agent: found }) => [found?.status, found?.provider])
    await append(...opened(session), batch(session))
    await eventually(() => expect(agents().at(-1)).toEqual(['signed', 'agent.example']))
    trusting = organizationId
    await append(handOff(session))
    await eventually(() => expect(agents().at(-1)).toEqual(['verified', 'Acme']))
    trusting = 'org_another'
    await append(handOff(session, { seq: 3, at: startedAt + 2000 }))
    await eventually(() =>
      expect(agents().slice(-2)).toEqual([
        ['verified', 'Acme'],
        ['signed', 'agent.example'],
      ]),
    )
  })
})

describe('a crawler that its host name verifies', () => {
  // Of a network that was given back. No address of documentation is looked up.
  const ip = '3ffe::1'
  const userAgent = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'
  const client = withParts(desktopChrome, { navigator: { user_agent: userAgent } })

  async function agentsAt(names: string[] | DnsReply): Promise<unknown[]> {
    const dns = await startReverseDns(names, { 'crawl-66-249-66-1.googlebot.com': [ip] })
    stops.push(dns.close)
    await start({ dnsServers: [dns.address] })
    const session = testSession('crawler', { client, ip })
    await append(...opened(session), batch(session))
    await eventually(() => expect(decisions().length).toBe(2))
    return decisions().map(({ agent: found }) => [
      found?.status,
      found?.method,
      found?.evidence?.host_name,
    ])
  }

  it('is declared until DNS answers, and verified then', async () => {
    expect(await agentsAt(['crawl-66-249-66-1.googlebot.com'])).toEqual([
      ['declared', null, null],
      ['verified', 'reverse_dns', 'crawl-66-249-66-1.googlebot.com'],
    ])
  })

  it('is forgotten with its session: no address is left when that is erased', async () => {
    await agentsAt(['crawl-66-249-66-1.googlebot.com'])
    const addresses = () => database.pool.query('select subject from scoring.agent_lookups')
    expect((await addresses()).rows).toEqual([{ subject: ip }])
    const { session_id } = (await database.pool.query('select session_id from scoring.sessions'))
      .rows[0]
    const erased = (id: string) =>
      transaction(database.pool, (tx) => eraseStates(tx, [visitorErased([id])]))
    await erased(`sid_${'0'.repeat(26)}`)
    expect((await addresses()).rowCount).toBe(1)
    await erased(session_id)
    expect((await addresses()).rowCount).toBe(0)
  })

  it.each<[string, string[] | DnsReply]>([
    ['has no name', 'NXDOMAIN'],
    ['has a name that does not lead back', ['crawl-66-249-66-2.googlebot.com']],
  ])('is spoofed where its address %s', async (_, names) => {
    expect(await agentsAt(names)).toEqual([
      ['declared', null, null],
      ['spoofed', 'reverse_dns', null],
    ])
  })
})

it('sessions without such headers cost no statement', async () => {
  const events = opened(testSession('plain')).map((event) =>
    codec.fromRecord({
      ...codec.toRecord(event, metaOf(event)),
      partition: 0,
      offset: 0,
      timestamp: 0,
    }),
  )
  const noStatement = { query: () => Promise.reject(new Error('a statement')) }
  const found = await outcomesOf(noStatement, pendingOf(events, new Map()), now)
  expect(found).toEqual({ signatures: new Map(), hosts: new Map(), requests: [] })
})
