import ipaddr from 'ipaddr.js'
import {
  column,
  nullable,
  type RowOf,
  replaceNul,
  type Table,
  untrustedText,
} from '../../infra/postgres/table.ts'
import type {
  AgentStatus,
  MarkLabel,
  Network,
  Platform,
  Repeats,
  SessionScored,
} from '../../schemas/events.ts'

/** Columns of the session's newest mark; null without a mark. */
export const markColumns = {
  mark_id: nullable(column.id()),
  mark: nullable(column.text<MarkLabel>()),
  mark_reason: nullable(column.text()),
  marked_at: nullable(column.bigint()),
}

const anonymizers = [
  'tor',
  'vpn',
  'relay',
  'residential_proxy',
  'proxy',
  'callback_proxy',
  'hosting',
] as const
/** `other`: no IP database lists the address as anonymizing. `unknown`: no database was consulted. */
export type NetworkKind = (typeof anonymizers)[number] | 'other' | 'unknown'
export const networkKinds: readonly NetworkKind[] = [...anonymizers, 'other', 'unknown']

/**
 * Facts: columns from the session's newest decision. They are cleared when the organization's decisions expire; then
 * `scoring_version` is null.
 */
export const factColumns = {
  scoring_version: nullable(column.text()),
  model: nullable(column.text()),
  signals: nullable(column.textArray()),
  signal_points: nullable(column.integerArray()),
  attribution: nullable(column.textArray()),
  agent: nullable(untrustedText(column.text())),
  page_host: nullable(untrustedText(column.text())),
  page_path: nullable(untrustedText(column.text())),
  referrer_host: nullable(untrustedText(column.text())),
  country: nullable(untrustedText(column.text())),
  asn: nullable(column.bigint()),
  network_holder: nullable(untrustedText(column.text())),
  network: nullable(column.text<NetworkKind>()),
  ip_address: nullable(column.address()),
  browser: nullable(untrustedText(column.text())),
  browser_version: nullable(untrustedText(column.text())),
  os: nullable(untrustedText(column.text())),
  os_version: nullable(untrustedText(column.text())),
  user_agent: nullable(untrustedText(column.text())),
  form_factor: nullable(untrustedText(column.text())),
  sdk: nullable(untrustedText(column.text())),
  platform: nullable(column.text<Platform>()),
  has_snapshot: nullable(column.boolean()),
  handed_off_at: nullable(column.bigint()),
  repeats: nullable(column.json<Repeats>()),
  agent_status: nullable(column.text<AgentStatus>()),
  agent_provider: nullable(untrustedText(column.text())),
  agent_product: nullable(column.text()),
}

export type SessionFacts = RowOf<
  Table<{ [K in keyof typeof factColumns]: ValueOf<(typeof factColumns)[K]> }>
>
type ValueOf<C> = C extends { write(value: infer T): unknown } ? T : never

export const factNames = Object.keys(factColumns) as (keyof SessionFacts)[]

export function sessionFacts(decision: SessionScored): SessionFacts {
  const { request, network, browser, device, sdk } = decision
  const signals = decision.signals_fired
  const page = URL.parse(request.url)
  return {
    scoring_version: decision.scoring_version,
    model: decision.model,
    signals: signals.map(({ signal }) => signal),
    signal_points: signals.map(({ signal_score }) => signal_score),
    attribution: attributionLabels(decision),
    agent: claimedAgent(decision),
    page_host: page?.hostname.slice(0, maxHost) || null,
    page_path: page?.pathname.slice(0, maxPath) ?? null,
    referrer_host: request.referrer === null ? null : URL.parse(request.referrer)?.hostname || null,
    country: network.location?.country_code ?? null,
    asn: asnNumber(network.routing.asn),
    network_holder: network.routing.organization,
    network: networkKindOf(network),
    ip_address: inetText(request.ip_address),
    browser: (withoutVendor(browser.name) ?? browser.app_name)?.slice(0, maxName) ?? null,
    browser_version: browser.major_version,
    os: device.operating_system.name?.slice(0, maxName) ?? null,
    os_version: /\d+/.exec(device.operating_system.version ?? '')?.[0] ?? null,
    user_agent: request.user_agent,
    form_factor: device.form_factor,
    sdk: sdk && `${sdk.name}/${sdk.version}`,
    platform: decision.platform,
    has_snapshot: decision.has_snapshot,
    handed_off_at: handedOffAt(decision),
    repeats: decision.repeats,
    agent_status: decision.agent.status,
    agent_provider: decision.agent.provider,
    agent_product: decision.agent.product,
  }
}

/** Returns null if the decision is not a hand-off. A look-up only copies the evidence of an earlier hand-off. */
export const handedOffAt = ({ hand_off, reason, evaluated_at }: SessionScored): number | null =>
  reason !== 'looked_up' && (hand_off || reason === 'hand_off') ? evaluated_at : null

// Facts from unencrypted members of the event.
const plaintextFacts: ReadonlySet<keyof SessionFacts> = new Set([
  ...(['scoring_version', 'model', 'signals', 'signal_points'] as const),
  ...(['platform', 'has_snapshot', 'handed_off_at', 'repeats'] as const),
])

/** Returns the facts of a decision that cannot be decrypted. Facts from encrypted members are null. */
export function plaintextDecisionFacts(decision: SessionScored): SessionFacts {
  const facts = sessionFacts(decision)
  for (const name of factNames) if (!plaintextFacts.has(name)) facts[name] = null
  return facts
}

// Paths are cut to this many characters; the rest is of no use for counting.
export const maxPath = 500
// An index entry is limited to 2,700 bytes, so indexed columns are cut.
const maxHost = 253
const maxName = 64
const maxLabels = 8

// Client hints say "Google Chrome", the user agent "Chrome".
const withoutVendor = (name: string | null) => name?.replace(/^(Google|Microsoft|Mozilla) /, '')

const attributionLabels = ({ attribution }: SessionScored) =>
  (attribution?.labels ?? [])
    .slice(0, maxLabels)
    .map(({ kind, value }) => replaceNul(`${kind}:${value.slice(0, maxName)}`))

// Returns the unverified agent that the client claims to be, or whose traces it shows.
function claimedAgent({ web_bot_auth, attribution }: SessionScored): string | null {
  return (
    web_bot_auth?.domain ?? attribution?.labels.find(({ kind }) => kind === 'tool')?.value ?? null
  )
}

function networkKindOf({ anonymity, status }: Network): NetworkKind {
  return anonymizers.find((kind) => anonymity[kind]) ?? (status === 'ready' ? 'other' : 'unknown')
}

// Parses `AS64500` or `64500`.
function asnNumber(asn: string | null): number | null {
  const digits = /^(?:AS)?(\d{1,10})$/.exec(asn ?? '')?.[1]
  return digits === undefined ? null : Number(digits)
}

// Returns the address in a form that Postgres accepts; null if it is invalid or has a zone.
function inetText(text: string): string | null {
  return ipaddr.isValid(text) && !text.includes('%') ? ipaddr.process(text).toString() : null
}
