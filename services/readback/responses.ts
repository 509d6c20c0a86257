import { iso, isoOrNull } from '../../infra/iso.ts'
import {
  agentJson,
  decisionJson,
  visitorLinkJson,
} from '../../projections/sessions/decision-json.ts'
import type { ListedFacts, SessionRow } from '../../projections/sessions/list-sessions.ts'
import type {
  LatestSession,
  SessionDetailRow,
  VisitorActivityRow,
  VisitorDetailRow,
  VisitorRow,
} from '../../projections/sessions/queries.ts'
import type { RelatedCount } from '../../projections/sessions/related.ts'
import type { DecisionSummary, LinkedVisitor } from '../../projections/sessions/tables.ts'
import type { TimelineEntry } from '../../projections/sessions/timeline.ts'
import {
  eventTopics,
  type Network,
  type SessionScored,
  type Verdict,
} from '../../schemas/events.ts'
import type { ReadbackOptions } from './options.ts'
import type { VisitorDetail, VisitorSummary } from './schemas/fingerprints.ts'
import type { Identification } from './schemas/identification.ts'
import type { ScoreExplanation } from './schemas/score.ts'
import type { SessionDetail, SessionSummary } from './schemas/sessions.ts'

/** Members that are present only if requested. */
export interface SessionExtras {
  identification?: Identification | null | undefined
  score?: ScoreExplanation | undefined
  withLogPosition?: boolean
  timeline?: TimelineEntry[] | undefined
  related?: RelatedCount[] | undefined
}

export function sessionDetail(
  row: SessionDetailRow,
  { identification, score, withLogPosition = false, timeline, related }: SessionExtras = {},
): Record<keyof SessionDetail, unknown> {
  const { detail } = row
  const { url, referrer, user_agent } = detail.request
  return {
    object: 'session',
    id: row.id,
    created_at: iso(row.created_at),
    client_user_id: row.client_user_id,
    mark: markOf(row),
    decision: detailDecision(row.decision),
    highlights: detail.highlights.map(({ evidence, ...rest }) =>
      evidence ? { ...rest, evidence } : rest,
    ),
    attribution: detail.attribution,
    web_bot_auth: detail.web_bot_auth,
    agent: agentJson(detail.agent),
    network: detailNetwork(detail.network),
    runtime_integrity: detail.runtime_integrity,
    visitor_fingerprint: detailVisitor(row),
    identification,
    score,
    log: withLogPosition ? { topic: eventTopics.SessionScored, ...row.logPosition } : undefined,
    timeline: timeline?.map((entry) => ({ ...entry, at: iso(entry.at) })),
    related: related?.map((count) => ({ ...count, since: iso(count.since) })),
    connection_fingerprint: detail.connection_fingerprint,
    previous_decisions: row.previous_decisions.map(detailDecision),
    request: { url, referrer, user_agent },
    browser: detail.browser,
    device: detail.device,
    analysis_coverage: detail.analysis_coverage,
    evidence: detail.evidence,
    scoring: { version: detail.scoring_version, model: detail.model },
    repeats: detail.repeats,
    signals_fired: detail.signals_fired.map(({ channel: _, ...signal }) => signal),
    client_telemetry: detail.client_telemetry,
    native_runtime_integrity: withoutNulls(detail.native_runtime_integrity),
    native_app: detail.native_app,
    native_carrier: detail.native_carrier,
    native_motion_print: detail.native_motion_print,
    device_identity: detail.device_identity,
    install_id: detail.install_id,
    // Unused, but required by `sessionDetailSchema`.
    behavior: null,
  }
}

const automationStatus = {
  bot: 'automated',
  human: 'human',
  inconclusive: 'uncertain',
} as const satisfies Record<Verdict, string>

function detailDecision(decision: DecisionSummary): SessionDetail['decision'] {
  return {
    event_id: decision.event_id,
    automation_status: automationStatus[decision.verdict],
    risk_score: decision.risk_score,
    evaluation_phase: decision.phase,
    decision_status: decision.is_provisional ? 'preliminary' : 'final',
    evaluated_at: iso(decision.evaluated_at),
  }
}

function detailNetwork(network: Network): SessionDetail['network'] {
  return {
    ...network,
    evaluated_at: isoOrNull(network.evaluated_at),
  }
}

function detailVisitor({ visitor, lifecycle }: SessionDetailRow) {
  if (!visitor) return null
  return {
    ...visitorLinkJson(visitor),
    resolution: resolutionOf(visitor),
    // Visitors can expire before their sessions.
    lifecycle: {
      first_seen_at: lifecycle && iso(lifecycle.first_seen_at),
      last_seen_at: lifecycle && iso(lifecycle.last_seen_at),
      seen_count: lifecycle?.seen_count ?? null,
    },
  }
}

const resolutionOf = ({ method, basis }: LinkedVisitor) => ({ method, basis })

// Omits members that the SDK could not read, which are null in the event.
function withoutNulls(integrity: SessionScored['native_runtime_integrity']): unknown {
  return (
    integrity && JSON.parse(JSON.stringify(integrity, (_, value: unknown) => value ?? undefined))
  )
}

export function sessionSummary(
  { visitor, ...row }: SessionRow,
  { roleOf, withResolution }: Pick<ReadbackOptions, 'roleOf'> & { withResolution: boolean },
): SessionSummary {
  return {
    object: 'session',
    id: row.id,
    created_at: iso(row.created_at),
    client_user_id: row.client_user_id,
    latest_decision: decisionJson(row.latest_decision),
    visitor_fingerprint: visitor && {
      ...visitorLinkJson(visitor),
      ...(withResolution && { resolution: resolutionOf(visitor) }),
    },
    mark: markOf(row),
    facts: row.facts && { ...factsOf(row.facts), top_signal: topSignal(row, roleOf) },
  }
}

/** Returns the signal with the most points for the verdict: a trust signal of a human, else a risk signal. */
function topSignal(
  { facts, latest_decision: { verdict } }: Pick<SessionRow, 'facts' | 'latest_decision'>,
  roleOf: ReadbackOptions['roleOf'],
): string | null {
  const role = verdict === 'human' ? 'trust' : 'risk'
  const [top] = (facts?.signals ?? [])
    .map((signal, i) => ({ signal, points: facts?.signal_points?.[i] ?? 0 }))
    .filter(({ signal }) => roleOf(signal) === role)
    .toSorted((a, b) => b.points - a.points)
  return top?.signal ?? null
}

function factsOf(facts: ListedFacts): Omit<NonNullable<SessionSummary['facts']>, 'top_signal'> {
  const { signals, page_host, page_path, country, asn, network_holder, network } = facts
  const { browser, browser_version, os, form_factor, handed_off_at } = facts
  const { agent_status, agent_provider, agent_product } = facts
  return {
    signals: signals ?? [],
    page_host,
    page_path,
    country,
    asn,
    network_holder,
    network,
    browser,
    browser_version,
    os,
    form_factor,
    agent_status,
    agent_provider,
    agent_product,
    handed_off_at: isoOrNull(handed_off_at),
  }
}

function markOf({ mark }: Pick<SessionRow, 'mark'>): SessionSummary['mark'] {
  return mark && { ...mark, marked_at: iso(mark.marked_at) }
}

/** `latest` is undefined unless requested. */
export function visitorSummary(row: VisitorRow, latest?: LatestSession | null): VisitorSummary {
  return {
    object: 'visitor_fingerprint',
    id: row.id,
    lifecycle: {
      first_seen_at: iso(row.first_seen_at),
      last_seen_at: iso(row.last_seen_at),
      seen_count: row.seen_count,
      // Kept for API compatibility: the published API requires a time, but visitors have no fixed expiry.
      expires_at: '9999-12-31T00:00:00.000Z',
    },
    latest_request: row.latest_request,
    storage: row.storage,
    anchors: row.anchors,
    ...(latest !== undefined && { latest_session: latest && latestSession(latest) }),
  }
}

const latestSession = ({ session_id: id, ...session }: LatestSession) => ({ id, ...session })

export function visitorDetail(row: VisitorDetailRow): VisitorDetail {
  return {
    ...visitorSummary(row),
    components: { vector: row.vector },
    activity: { sessions: row.activity.map(activityOf) },
  }
}

function activityOf({ session_id, decision, request, score_breakdown }: VisitorActivityRow) {
  const { url, user_agent, ip_address, screen_size, is_touch_capable } = request
  return {
    session_id,
    decision: decisionJson(decision),
    request: { url, user_agent, ip_address, screen_size, is_touch_capable },
    score_breakdown: { categories: score_breakdown },
  }
}
