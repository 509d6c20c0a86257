import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { readAddresses } from '../../../infra/ip/data/read.ts'
import { readReputationList } from '../../../infra/ip/data/reputation.ts'
import { type AddressNetwork, openNetwork } from '../../../infra/ip/network.ts'
import type { SessionMark } from '../../../projections/sessions/marks.ts'
import type {
  DocumentOpened,
  SessionAgent,
  SessionAttestation,
  SessionScored,
  VisitorLink,
} from '../../../schemas/events.ts'
import { nativeDetail } from '../../../schemas/native-detail.ts'
import { snapshotSchema, type Withheld } from '../../../schemas/observations.ts'
import { planSession } from '../../../services/cli/simulate/generate/plan.ts'
import { sessionDetail } from '../../../services/readback/answers.ts'
import type { Identification } from '../../../services/readback/schemas/identification.ts'
import { explainScore } from '../../../services/scoring/explain/score.ts'
import { modelId, standardModel } from '../../../services/scoring/model/model.ts'
import { scoredEvent } from '../../../services/scoring/scored-event.ts'
import { evaluate } from '../../../services/scoring/signals/evaluate.ts'
import { hashesOf } from '../../../services/scoring/signals/repeats.ts'
import { writeMmdb } from '../../support/mmdb.ts'
import { repeatsOf, visitorLink } from '../../support/session-scored.ts'
import {
  batch,
  opened,
  startedAt,
  type TestSession,
  testSession,
} from '../scoring/support/events.ts'
import { stateAfter } from '../scoring/support/sessions.ts'
import { desktopChrome, withParts } from '../scoring/support/snapshots.ts'

const codec = createCodec()

interface Fixture {
  session: TestSession
  network: AddressNetwork
  /** Of the page that was opened. */
  page?: Partial<DocumentOpened>
  behavior?: object | undefined
  visitor?: VisitorLink | null
  /** Default: as its own names say. */
  identity?: SessionAgent
  attestation?: SessionAttestation
}

/** What scoring makes of a session, encoded and decoded as on the log. */
export function scored({ visitor = null, ...fixture }: Fixture, index: number): SessionScored {
  const repeats = repeatsOf(1 + (index % 2))
  const { network, identity, attestation } = fixture
  const evaluation = evaluate({ state: stateOf(fixture), network, repeats })
  Object.assign(evaluation.facts, identity && { identity }, attestation && { attestation })
  const trigger = {
    decisionId: `evt_${index}`,
    reason: 'first' as const,
    final: index % 2 === 0,
    onlyOnChange: false,
    at: startedAt,
  }
  const hashes = hashesOf(evaluation.facts)
  const evaluated = {
    evaluation,
    hashes,
    visitor,
    evaluatedAt: startedAt + index,
    durationMs: 1,
  }
  const { event } = scoredEvent({ state: stateOf(fixture), trigger, ...evaluated })
  const decoded = codec.decode(codec.encode(event))
  if (decoded.type !== 'SessionScored') throw new Error(decoded.type)
  return decoded.data
}

function stateOf({ session, page, behavior }: Fixture) {
  const observations = { version: 1, elapsed_ms: 500, snapshot: session.client.snapshot, behavior }
  const opening = opened(session).map((event) =>
    event.type === 'DocumentOpened' ? { ...event, data: { ...event.data, ...page } } : event,
  )
  return stateAfter([...opening, batch(session, { observations })])
}

/** The body of GET /v1/sessions/{sessionId}. What the read model has beside the event varies with the index. */
export function shown(event: SessionScored, index: number): unknown {
  const times = { first_seen_at: startedAt + index, last_seen_at: startedAt + index }
  const row = {
    id: event.session_id,
    created_at: event.created_at + index,
    client_user_id: index % 2 === 0 ? null : 'user-1',
    mark: index % 3 === 0 ? null : markOf(index),
    decision: event,
    place: { partition: index % 3, offset: index },
    previous_decisions: [event],
    visitor: event.visitor,
    lifecycle: event.visitor && { ...times, seen_count: index + 1 },
    detail: event,
  }
  const identification = index % 4 === 0 ? null : identified(index)
  const score = explainScore(
    event,
    event.model === modelId(standardModel) ? standardModel : undefined,
  )
  return JSON.parse(JSON.stringify(sessionDetail(row, { identification, score, withLog: true })))
}

function markOf(index: number): SessionMark {
  const label = index % 2 === 0 ? ('bot' as const) : ('human' as const)
  return {
    id: `mrk_${index}`,
    label,
    reason: index % 4 < 2 ? null : 'charged_back',
    marked_at: index,
  }
}

function identified(index: number): Identification {
  const named = (name: string) => [{ name: `${name} ${index}`, visitors_with_it: index }]
  const components = { agreed: named('a'), changed: named('b'), unknown: named('c') }
  const isEven = index % 2 === 0
  const known = index % 4 === 2 ? null : components
  const candidate = {
    visitor_id: `vid_${index}`,
    bits: index,
    same_network: isEven,
    components: known,
  }
  return {
    session_id: `sid_${index}`,
    decided_by: isEven ? 'look' : 'kept_id',
    bits_needed: index,
    of_visitors: index,
    chosen: index % 4 === 3 ? null : candidate,
    next:
      index % 4 === 3
        ? null
        : { ...candidate, lost_because: isEven ? 'less_likely' : 'kept_id_decides' },
  }
}

/** What databases say of some addresses, and of one of which nothing is known. */
export async function lookUpNetworks(): Promise<AddressNetwork[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-members-'))
  const [cityPath = '', asnPath = '', anonymousPath = ''] = ['city', 'asn', 'anonymous'].map(
    (name) => path.join(folder, `${name}.mmdb`),
  )
  const place = (code: string, name: string, at: number) => ({
    city: { names: { en: `City of ${name}` } },
    subdivisions: [{ names: { en: `Region of ${name}` } }],
    country: { iso_code: code, names: { en: name } },
    location: { latitude: at, longitude: at, time_zone: `Europe/${name}`, accuracy_radius: at },
    postal: { code: `${at}` },
    traits: { user_type: 'business' },
  })
  const asn = (number: number) => ({
    autonomous_system_number: number,
    autonomous_system_organization: `AS ${number}`,
  })
  await writeMmdb(cityPath, 'City', {
    '8.8.8.0/24': place('PT', 'Lisbon', 38),
    '2a00::/16': place('DE', 'Berlin', 52),
  })
  await writeMmdb(asnPath, 'ASN', { '8.8.8.0/24': asn(1), '9.9.9.0/24': asn(2) })
  const flag = (name: string) => ({ [name]: true, provider_name: name })
  const flags = [
    'anonymous_vpn',
    'public_proxy',
    'tor_exit_node',
    'hosting_provider',
    'residential_proxy',
  ]
  await writeMmdb(
    anonymousPath,
    'Anonymous-IP',
    Object.fromEntries(flags.map((name, i) => [`9.9.9.${i}/32`, flag(`is_${name}`)])),
  )
  const listFile = path.join(folder, 'list.txt')
  await writeFile(listFile, '9.9.9.0/24\n')
  const lists = [await readReputationList({ category: 'attacks', file: listFile })]
  const all = await openNetwork({ cityPath, asnPath, anonymousPath, lists: () => lists })
  const countries = await openNetwork({ cityPath })
  const addresses = await readAddresses()
  const shipped = await openNetwork({ addresses: () => addresses })
  await rm(folder, { recursive: true, force: true })
  const listed = flags.map((_, i) => all.lookup(`9.9.9.${i}`, startedAt))
  const others = [all.lookup('8.8.8.8', startedAt + 1), countries.lookup('2a00::1', startedAt)]
  const relayed = shipped.lookup('104.28.32.1', startedAt)
  return [...listed, ...others, relayed, countries.lookup('10.0.0.1', startedAt)]
}

/** The same snapshot with every value another one. */
function changed(value: unknown): unknown {
  if (typeof value === 'boolean') return !value
  if (typeof value === 'number') return value + 1
  if (typeof value === 'string') return `${value}-2`
  if (Array.isArray(value)) return value.map(changed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, changed(one)]))
}

const full = snapshotSchema.parse(
  withParts(desktopChrome, {
    canvas: { geometry_hash: 'g', text_hash: 't', winding: true, offscreen_consistent: true },
  }).snapshot,
)
const withheld = (group: Withheld['group'], reason: Withheld['reason']) =>
  withParts(desktopChrome, {
    worker: { user_agent: null },
    webgl: { renderer: null },
    collection: { withheld: [{ group, reason }] },
  })
const outdated = withParts(desktopChrome, {
  navigator: {
    user_agent: desktopChrome.snapshot.navigator?.user_agent?.replace('140', '90') ?? null,
  },
})
const detailOf = (sent: object) =>
  snapshotSchema.parse({ native: { bundle_id: 'com.example.app', ...sent } })
// What the form of a member takes.
const sample: Record<string, unknown> = {
  boolean: true,
  count: 3,
  'text of 200': 'text',
  'up to 32: text of 200': ['text'],
  'up to 32: count': [27_042],
  '{ bias, noise }, each 3 numbers': { bias: [1, 2, 3], noise: [4, 5, 6] },
}
const samplesOf = (members: (typeof nativeDetail)[string] = {}) =>
  Object.fromEntries(
    Object.entries(members).map(([name, [{ form }]]) => [name, sample[String(form)]]),
  )
const detailed = detailOf({
  install_time_epoch_ms: 1,
  provisioning_team: 'T',
  mcc: '268',
  mnc: '01',
  phone_type: 'gsm',
  network_type: 'wifi',
  radio_access: ['lte'],
  motion: samplesOf(nativeDetail.motion),
  integrity: Object.fromEntries(
    Object.entries(nativeDetail).map(([name, all]) => [
      name.replace('integrity.', ''),
      samplesOf(all),
    ]),
  ),
})
const attestedBy = (method: string, at: number): SessionAttestation => ({
  status: 'valid',
  method,
  reason: null,
  app_id: null,
  device: {
    id: `${method}-${at}`,
    first_seen_at: at,
    last_seen_at: at + 1,
    seen_count: at,
    public_key: null,
    counter: at,
  },
})
const attacked = {
  device_model: 'iPhone15,2',
  bundle_id: 'com.example.other',
  app_version: '1',
  app_build: '2',
  country_iso: 'pt',
  jailbreak_or_root: true,
  hooks: true,
  debugger: true,
  code_signing_invalid: true,
  simulator_or_emulator: true,
  motion: { ...samplesOf(nativeDetail.motion), mag: null },
}

/** Sessions of all kinds of clients, honest and not, through networks of all kinds. */
export function fixtures(networks: AddressNetwork[]): Fixture[] {
  return [...simulated(), ...chosen()].map((fixture, index) => {
    const network = networks[index % networks.length]
    if (!network) throw new Error('there are no networks')
    return { ...fixture, network }
  })
}

function simulated(): Omit<Fixture, 'network'>[] {
  return Array.from({ length: 200 }, (_, index) => {
    const { client: platform, batches } = planSession('members', index)
    const client = { snapshot: batches[0].snapshot ?? {} }
    return {
      session: testSession(`simulated-${index}`, { platform, client }),
      behavior: batches[1]?.behavior,
    }
  })
}

function chosen(): Omit<Fixture, 'network'>[] {
  const session = (name: string, some: Partial<TestSession> = {}) => ({
    session: testSession(name, some),
  })
  const signed = {
    signature: { status: 'invalid', reason: 'lifetime', signed: null },
    signatureAgent: 'agent.example',
  } as const
  const named = {
    signature: { status: 'absent', reason: null, signed: null },
    signatureAgent: 'other.example',
  } as const
  const at = startedAt + 1
  const crawler: SessionAgent = {
    status: 'verified',
    provider: 'google',
    product: 'Googlebot',
    purpose: 'search',
    method: 'reverse_dns',
    evidence: {
      catalogue_id: 'google-crawler',
      domain: null,
      key_id: null,
      list: 'Googlebot',
      reason: null,
      host_name: 'crawl.googlebot.com',
      fetched_at: startedAt,
    },
  }
  const signer: SessionAgent = {
    status: 'declared',
    provider: 'agent.example',
    product: null,
    purpose: null,
    method: null,
    evidence: {
      catalogue_id: null,
      domain: 'agent.example',
      key_id: 'key',
      list: null,
      reason: 'lifetime',
      host_name: null,
      fetched_at: at,
    },
  }
  return [
    { ...session('crawler'), identity: crawler },
    { ...session('signer'), identity: signer },
    { ...session('full', { client: { snapshot: full }, ...signed }), visitor: visitorLink() },
    session('without a worker', { client: withheld('worker', 'late') }),
    session('without graphics', { client: withheld('webgl', 'blocked') }),
    {
      ...session('changed', {
        client: { snapshot: snapshotSchema.parse(changed(full)) },
        ...named,
      }),
      page: {
        url: 'https://shop.example/other',
        referrer: 'https://search.example/',
        ja4: 't13d1517h2_8daaf6152771_cb7bf5808d99',
        http2_fingerprint: '1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p',
      },
      visitor: visitorLink({
        id: 'vid_2',
        confidence: 87,
        identified_at: at,
        method: 'fingerprint',
        basis: 'probabilistic',
      }),
    },
    session('outdated', { client: outdated }),
    session('silent', { client: { snapshot: {} } }),
    {
      ...session('detailed', { platform: 'ios', client: { snapshot: detailed } }),
      attestation: attestedBy('app_attest', 1),
    },
    {
      ...session('moved', {
        platform: 'android',
        client: { snapshot: snapshotSchema.parse(changed(detailed)) },
      }),
      attestation: attestedBy('play_integrity', 2),
    },
    session('attacked', {
      platform: 'ios',
      client: { snapshot: snapshotSchema.parse({ native: attacked }) },
    }),
  ]
}
