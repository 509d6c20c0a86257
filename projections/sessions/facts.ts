import ipaddr from 'ipaddr.js'
import {
  column,
  foreign,
  nullable,
  type RowOf,
  storable,
  type Table,
} from '../../infra/postgres/table.ts'
import type {
  AgentStatus,
  MarkLabel,
  Network,
  Platform,
  Repeats,
  SessionScored,
} from '../../schemas/events.ts'

/** The newest mark of the session; null without one. */
export const markColumns = {
  mark_id: nullable(column.id()),
  mark: nullable(column.text<MarkLabel>()),
  mark_reason: nullable(column.text()),
  marked_at: nullable(column.bigint()),
}

const anonymous = [
  'tor',
  'vpn',
  'relay',
  'residential_proxy',
  'proxy',
  'callback_proxy',
  'hosting',
] as const
/** `other` = databases were asked and know nothing of the kind; `unknown` = none was asked. */
export type NetworkKind = (typeof anonymous)[number] | 'other' | 'unknown'
export const networkKinds: readonly NetworkKind[] = [...anonymous, 'other', 'unknown']

/**
 * What the row of a session says of its newest decision beside what the list shows. All of them are null once the
 * organization's decisions have ended and its sessions have not: `scoring_version` says whether that is so.
 */
export const factColumns = {
  scoring_version: nullable(column.text()),
  model: nullable(column.text()),
  signals: nullable(column.textArray()),
  signal_points: nullable(column.integerArray()),
  attribution: nullable(column.textArray()),
  agent: nullable(foreign(column.text())),
  page_host: nullable(foreign(column.text())),
  page_path: nullable(foreign(column.text())),
  referrer_host: nullable(foreign(column.text())),
  country: nullable(foreign(column.text())),
  asn: nullable(column.bigint()),
  network_holder: nullable(foreign(column.text())),
  network: nullable(column.text<NetworkKind>()),
  ip_address: nullable(column.address()),
  browser: nullable(foreign(column.text())),
  browser_version: nullable(foreign(column.text())),
  os: nullable(foreign(column.text())),
  os_version: nullable(foreign(column.text())),
  user_agent: nullable(foreign(column.text())),
  form_factor: nullable(foreign(column.text())),
  sdk: nullable(foreign(column.text())),
  platform: nullable(column.text<Platform>()),
  has_snapshot: nullable(column.boolean()),
  handed_off_at: nullable(column.bigint()),
  repeats: nullable(column.json<Repeats>()),
  agent_status: nullable(column.text<AgentStatus>()),
  agent_provider: nullable(foreign(column.text())),
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
    attribution: attributionOf(decision),
    agent: agentOf(decision),
    page_host: page?.hostname.slice(0, maxHost) || null,
    page_path: page?.pathname.slice(0, maxPath) ?? null,
    referrer_host: request.referrer === null ? null : URL.parse(request.referrer)?.hostname || null,
    country: network.location?.country_code ?? null,
    asn: numberOf(network.routing.asn),
    network_holder: network.routing.organization,
    network: networkKindOf(network),
    ip_address: addressOf(request.ip_address),
    browser: (withoutMaker(browser.name) ?? browser.app_name)?.slice(0, maxName) ?? null,
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

/** Null for the decision of a look-up, too, which has the evidence of the hand-off before it. */
export const handedOffAt = ({ hand_off, reason, evaluated_at }: SessionScored): number | null =>
  reason !== 'looked_up' && (hand_off || reason === 'hand_off') ? evaluated_at : null

// Of a decision that cannot be opened, everything else would be what stands in for it.
const readableFacts: ReadonlySet<keyof SessionFacts> = new Set([
  ...(['scoring_version', 'model', 'signals', 'signal_points'] as const),
  ...(['platform', 'has_snapshot', 'handed_off_at', 'repeats'] as const),
])

/** What is known of a decision whose personal members are closed; the other columns are null. */
export function closedFacts(decision: SessionScored): SessionFacts {
  const facts = sessionFacts(decision)
  for (const name of factNames) if (!readableFacts.has(name)) facts[name] = null
  return facts
}

// Beyond it a path is no page of which anybody counts sessions.
const maxPath = 500
// What is in the index: an entry has 2,700 bytes at most, and nobody can send more than fits.
const maxHost = 253
const maxName = 64
const maxLabels = 8

// Chromium's client hints say "Google Chrome" where its user agent says "Chrome".
const withoutMaker = (name: string | null) => name?.replace(/^(Google|Microsoft|Mozilla) /, '')

const attributionOf = ({ attribution }: SessionScored) =>
  (attribution?.labels ?? [])
    .slice(0, maxLabels)
    .map(({ kind, value }) => storable(`${kind}:${value.slice(0, maxName)}`))

// What it says that it is, or leaves marks of. Nothing of it is verified.
function agentOf({ web_bot_auth, attribution }: SessionScored): string | null {
  return (
    web_bot_auth?.domain ?? attribution?.labels.find(({ kind }) => kind === 'tool')?.value ?? null
  )
}

function networkKindOf({ anonymity, status }: Network): NetworkKind {
  return anonymous.find((kind) => anonymity[kind]) ?? (status === 'ready' ? 'other' : 'unknown')
}

// AS64500.
function numberOf(asn: string | null): number | null {
  const digits = /^(?:AS)?(\d{1,10})$/.exec(asn ?? '')?.[1]
  return digits === undefined ? null : Number(digits)
}

// In full, and without a zone: Postgres reads no other forms.
function addressOf(text: string): string | null {
  return ipaddr.isValid(text) && !text.includes('%') ? ipaddr.process(text).toString() : null
}
