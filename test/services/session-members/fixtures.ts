import type { SessionAttestation, SessionScored, VisitorLink } from '../../../schemas/events.ts'
import { nativeDetail } from '../../../schemas/native-detail.ts'
import { snapshotSchema, type Withheld } from '../../../schemas/observations.ts'
import { planSession } from '../../../services/cli/simulate/generate/plan.ts'
import { sessionDetail } from '../../../services/readback/answers.ts'
import { explainScore } from '../../../services/scoring/explain/score.ts'
import { modelId, standardModel } from '../../../services/scoring/model/model.ts'
import type { IdentityChecks } from '../../../services/scoring/session/identity.ts'
import { repeatsOf, visitorLink } from '../../support/session-scored.ts'
import { startedAt, type TestSession, testSession } from '../scoring/support/events.ts'
import { asRead, evaluateState, scored, stateOf } from '../scoring/support/sessions.ts'
import { desktopChrome, withParts } from '../scoring/support/snapshots.ts'

interface Fixture {
  session: TestSession
  behavior?: object | undefined
  visitor?: VisitorLink
  /** The agent that was found. */
  checks?: IdentityChecks
  attestation?: SessionAttestation
}

/** Decisions about sessions of all kinds, as readers of the log get them. */
export const decisions = (): SessionScored[] => [...simulated(), ...chosen()].map(decided)

function decided({ session, behavior, checks, ...fixture }: Fixture, index: number): SessionScored {
  const state = stateOf(session, behavior)
  const { attestation, visitor = null } = fixture
  const documents = state.documents.map((one) => ({ ...one, ...(attestation && { attestation }) }))
  const repeats = repeatsOf(1 + (index % 2))
  const evaluation = evaluateState({ ...state, documents }, { checks, repeats })
  const trigger = {
    decisionId: `evt_${index}`,
    reason: 'first' as const,
    final: index % 2 === 0,
    onlyOnChange: false,
    at: startedAt,
  }
  return asRead(scored(state, evaluation, { trigger, visitor, evaluatedAt: startedAt + index }))
}

/** The body of GET /v1/sessions/{sessionId}. What the read model has beside the event varies with the index. */
export function shown(event: SessionScored, index: number): unknown {
  const times = { first_seen_at: startedAt + index, last_seen_at: startedAt + index }
  const row = {
    id: event.session_id,
    created_at: event.created_at + index,
    client_user_id: index % 2 === 0 ? null : 'user-1',
    mark: null,
    decision: event,
    place: { partition: index % 3, offset: index },
    previous_decisions: [event],
    visitor: event.visitor,
    lifecycle: event.visitor && { ...times, seen_count: index + 1 },
    detail: event,
  }
  const model = event.model === modelId(standardModel) ? standardModel : undefined
  const score = explainScore(event, model)
  return JSON.parse(JSON.stringify(sessionDetail(row, { score, withLog: true })))
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
const naming = (user_agent: string) => withParts(desktopChrome, { navigator: { user_agent } })

// A value by the form of a member.
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
/** An app that was attacked, and says all that it can. */
const detailed = {
  native: {
    device_model: 'iPhone15,2',
    bundle_id: 'com.example.app',
    app_version: '1',
    app_build: '2',
    install_time_epoch_ms: 1,
    provisioning_team: 'T',
    country_iso: 'pt',
    mcc: '268',
    mnc: '01',
    phone_type: 'gsm',
    network_type: 'wifi',
    radio_access: ['lte'],
    jailbreak_or_root: true,
    hooks: true,
    debugger: true,
    code_signing_invalid: true,
    simulator_or_emulator: true,
    motion: samplesOf(nativeDetail.motion),
    integrity: Object.fromEntries(
      Object.entries(nativeDetail).map(([name, all]) => [
        name.replace('integrity.', ''),
        samplesOf(all),
      ]),
    ),
  },
}
const { native } = detailed
const moved = changed({ native: { ...native, motion: { ...native.motion, mag: null } } })
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

const simulated = (): Fixture[] =>
  Array.from({ length: 200 }, (_, index) => {
    const { client: platform, batches } = planSession('members', index)
    const client = { snapshot: batches[0].snapshot ?? {} }
    const session = testSession(`simulated-${index}`, { platform, client })
    return { session, behavior: batches[1]?.behavior }
  })

function chosen(): Fixture[] {
  const googlebot = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'
  const crawler = { client: naming(googlebot), ip: '66.249.66.1' }
  const ranges = { botOperatorAt: () => 'Googlebot', listedOperators: () => new Set(['Googlebot']) }
  const hosts = { host: 'crawl-66-249-66-1.googlebot.com', fetchedAt: startedAt }
  const lacking = { status: 'invalid', reason: 'lifetime', keyId: 'key', trusted: null } as const
  const signatureOf = (status: 'invalid' | 'absent', signature_agent: string) => ({
    signature: { status, reason: null, signed: null },
    signature_agent,
  })
  const document = {
    ...signatureOf('absent', 'other.example'),
    url: 'https://shop.example/other',
    referrer: 'https://search.example/',
    ja4: 't13d1517h2_8daaf6152771_cb7bf5808d99',
    http2_fingerprint: '1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p',
  }
  return [
    { session: testSession('crawler', crawler), checks: { ranges, hosts } },
    {
      session: testSession('signer', { document: signatureOf('invalid', 'agent.example') }),
      checks: { signature: { ...lacking, fetchedAt: startedAt + 1 } },
    },
    { session: testSession('full', { client: { snapshot: full } }), visitor: visitorLink() },
    { session: testSession('without a worker', { client: withheld('worker', 'late') }) },
    { session: testSession('without graphics', { client: withheld('webgl', 'blocked') }) },
    {
      session: testSession('changed', {
        client: { snapshot: snapshotSchema.parse(changed(full)) },
        document,
      }),
      visitor: visitorLink({
        id: 'vid_2',
        confidence: 87,
        identified_at: startedAt + 1,
        method: 'fingerprint',
        basis: 'probabilistic',
      }),
    },
    {
      session: testSession('outdated', {
        client: naming(desktopChrome.snapshot.navigator?.user_agent?.replace('140', '90') ?? ''),
      }),
    },
    { session: testSession('silent', { client: { snapshot: {} } }) },
    {
      session: testSession('detailed', {
        platform: 'ios',
        client: { snapshot: snapshotSchema.parse(detailed) },
      }),
      attestation: attestedBy('app_attest', 1),
    },
    {
      session: testSession('moved', {
        platform: 'android',
        client: { snapshot: snapshotSchema.parse(moved) },
      }),
      attestation: attestedBy('play_integrity', 2),
    },
  ]
}
