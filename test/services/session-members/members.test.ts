import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { SessionAttestation, SessionScored, VisitorLink } from '../../../schemas/events.ts'
import { nativeDetail } from '../../../schemas/native-detail.ts'
import { snapshotSchema, type Withheld } from '../../../schemas/observations.ts'
import { planSession } from '../../../services/cli/simulate/generate/plan.ts'
import { sessionDetail } from '../../../services/readback/responses.ts'
import { sessionDetailSchema } from '../../../services/readback/schemas/sessions.ts'
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

/** The decision about the session, as readers of the log get it. */
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
function shown(event: SessionScored, index: number): unknown {
  const times = { first_seen_at: startedAt + index, last_seen_at: startedAt + index }
  const row = {
    id: event.session_id,
    created_at: event.created_at + index,
    client_user_id: index % 2 === 0 ? null : 'user-1',
    mark: null,
    decision: event,
    logPosition: { partition: index % 3, offset: index },
    previous_decisions: [event],
    visitor: event.visitor,
    lifecycle: event.visitor && { ...times, seen_count: index + 1 },
    detail: event,
  }
  const model = event.model === modelId(standardModel) ? standardModel : undefined
  const score = explainScore(event, model)
  const isEven = index % 2 === 0
  const at = startedAt + index
  const kind = isEven ? ('opened' as const) : ('marked' as const)
  const timeline = [{ kind, at, event_id: isEven ? null : event.event_id, value: `${index}` }]
  const field = isEven ? ('ip' as const) : ('asn' as const)
  const related = [{ field, value: `${index}`, sessions: index, since: at }]
  const extras = { score, withLogPosition: true, timeline, related }
  return JSON.parse(JSON.stringify(sessionDetail(row, extras)))
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

// Values by the type of a member.
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
    Object.entries(members).map(([name, [{ docType }]]) => [name, sample[String(docType)]]),
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

function simulated(): Fixture[] {
  return Array.from({ length: 200 }, (_, index) => {
    const { client: platform, batches } = planSession('members', index)
    const client = { snapshot: batches[0].snapshot ?? {} }
    const session = testSession(`simulated-${index}`, { platform, client })
    return { session, behavior: batches[1]?.behavior }
  })
}

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
    { session: testSession('crawler', crawler), checks: { ranges, host: hosts } },
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

/** A part of a JSON Schema, as far as the session detail needs. */
interface Schema {
  const?: unknown
  $ref?: string
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  items?: Schema
  additionalProperties?: Schema | boolean
  $defs?: Record<string, Schema>
}

/** A member that holds a value and no further members: `network.routing.asn`, `highlights[].key`. */
interface Member {
  path: string
  /** The type has one value only. */
  isLiteral: boolean
}

function membersOf(schema: z.ZodType): Member[] {
  const root: Schema = JSON.parse(JSON.stringify(z.toJSONSchema(schema)))
  return leaves(root, '', root.$defs ?? {})
}

function leaves(schema: Schema, path: string, named: Record<string, Schema>): Member[] {
  const inner = (part: Schema, at: string) => leaves(part, at, named)
  const { $ref, anyOf, properties, items, additionalProperties } = schema
  if ($ref) return inner(named[$ref.slice($ref.lastIndexOf('/') + 1)] ?? {}, path)
  if (anyOf) return distinct(anyOf.flatMap((part) => inner(part, path)))
  if (properties) {
    const below = (name: string) => (path ? `${path}.${name}` : name)
    return Object.entries(properties).flatMap(([name, part]) => inner(part, below(name)))
  }
  if (items) return inner(items, `${path}[]`)
  if (typeof additionalProperties === 'object') return inner(additionalProperties, `${path}{}`)
  return [{ path, isLiteral: schema.const !== undefined }]
}

function distinct(members: Member[]): Member[] {
  return [...new Map(members.map((member) => [member.path, member])).values()]
}

/** Returns the values of all answers at a member's path. An empty list counts as one value. */
function valuesOf(member: string, answers: unknown[]): Set<string> {
  const found = member
    .split('.')
    .reduce((values, step) => values.flatMap((value) => below(value, step)), answers)
  return new Set(found.map((value) => (isObject(value) ? 'object' : JSON.stringify(value))))
}

function below(value: unknown, step: string): unknown[] {
  const name = step.replace(/\[\]$|\{\}$/, '')
  if (!isObject(value) || !Object.hasOwn(value, name)) return []
  const one: unknown = Reflect.get(value, name)
  if (name === step) return [one]
  const inner = isObject(one) ? Object.values(one) : []
  return inner.length > 0 ? inner : ['none']
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** A row of the table in docs/reference/session.md. */
interface DocumentedMembers {
  /** Paths; one that ends in `.*` stands for the member itself and all below it. */
  paths: string[]
  filledBy: string
}

function documentedMembers(page: string): DocumentedMembers[] {
  const table = /<!-- members -->\n([\s\S]*?)<!-- \/members -->/.exec(page)?.[1] ?? ''
  return table
    .split('\n')
    .slice(2, -1)
    .map((row) => {
      const [, members = '', filledBy = ''] = row.split('|').map((cell) => cell.trim())
      return {
        paths: [...members.matchAll(/`([^`]+)`/g)].flatMap(([, path = '']) => expanded(path)),
        filledBy,
      }
    })
}

/** `a.{b, c}.d` is `a.b.d` and `a.c.d`. */
function expanded(path: string): string[] {
  const choice = /\{([^{}]+)\}/.exec(path)
  if (!choice) return [path]
  const [whole = '', names = ''] = choice
  return names.split(',').flatMap((name) => expanded(path.replace(whole, name.trim())))
}

function covers(path: string, member: string): boolean {
  if (!path.endsWith('.*')) return path === member
  const whole = path.slice(0, -'.*'.length)
  return member === whole || member.startsWith(`${whole}.`)
}

/** Members that nothing fills, without those below one that is always null. It may go down, and never up. */
const mostUnfilled = 8

const all = membersOf(sessionDetailSchema)
// Marks, identifications and what databases say of an address come from elsewhere and are only passed on: tests of
// marks, of visitors and of `infra/ip`.
const isOfOthers = /^(mark|identification|network)(\.|$)|^analysis_coverage\.network$/
const members = all
  .filter(({ path, isLiteral }) => !isLiteral && !isOfOthers.test(path))
  .map(({ path }) => path)

const page = new URL('../../../docs/reference/session.md', import.meta.url)
const rows = documentedMembers(await readFile(page, 'utf8'))
const [first, ...others] = [...simulated(), ...chosen()].map(decided)
if (!first) throw new Error('no decisions')
// As of a release before, and of a provisional decision.
const earlier = { ...first, repeats: null, scoring_version: '3', model: 'tidegate-3' }
const answers = [first, earlier, ...others].map(shown)
const constant = members.filter((member) => valuesOf(member, answers).size < 2)
const rowsOf = (member: string) =>
  rows.filter(({ paths }) => paths.some((path) => covers(path, member)))

test('docs/reference/session.md says of every member what fills it', () => {
  expect(all.length).toBeGreaterThan(300)
  expect(all.filter(({ path }) => rowsOf(path).length !== 1)).toEqual([])
  const paths = rows.flatMap((row) => row.paths)
  expect(paths.filter((path) => !all.some((member) => covers(path, member.path)))).toEqual([])
})

test('every member takes a second value, but for those of which the page says that nothing fills them, and why', () => {
  const isUnfilled = (member: string) =>
    rowsOf(member).every(({ filledBy }) => /^nothing: \w+/.test(filledBy))
  expect(constant).toEqual(members.filter(isUnfilled))
})

test('no more members stand still than did', () => {
  const isBelow = (member: string) => constant.some((other) => member.startsWith(`${other}.`))
  expect(constant.filter((member) => !isBelow(member)).length).toBeLessThanOrEqual(mostUnfilled)
})
