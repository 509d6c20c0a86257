/** Members of answers of `/v1` that the pages show; `/openapi.json` has all. */

/** As they are stacked in charts, from below. */
export const environments = ['live', 'test'] as const
export type EnvironmentName = (typeof environments)[number]

export const verdictOrder = ['human', 'inconclusive', 'bot'] as const
export type VerdictName = (typeof verdictOrder)[number]

export interface ApiFacts {
  signals: string[]
  page_host: string | null
  page_path: string | null
  country: string | null
  asn: number | null
  network_holder: string | null
  network: string | null
  browser: string | null
  browser_version: string | null
  os: string | null
  agent_status: string | null
  agent_provider: string | null
  handed_off_at: string | null
}

export interface ListedSessionRow {
  id: string
  created_at: string
  client_user_id: string | null
  latest_decision: { verdict: VerdictName; risk_score: number; is_provisional: boolean; evaluated_at: string }
  visitor_fingerprint: { id: string } | null
  mark: { label: string; reason: string | null } | null
  facts: ApiFacts | null
}

/** With `include=resolution`. */
export interface LinkedSessionRow extends ListedSessionRow {
  visitor_fingerprint: {
    id: string
    confidence: number | null
    resolution: { method: string | null; basis: 'deterministic' | 'probabilistic' | null }
  } | null
}

export interface ApiVisitor {
  id: string
  lifecycle: { first_seen_at: string; last_seen_at: string; seen_count: number }
  latest_request: { user_agent: string; ip_address: string }
  storage: Record<string, boolean>
}

export interface ApiErasure {
  id: string
  visitor_id: string | null
  session_ids: string[]
  counts: Record<string, number>
  erased_at: string
}

export interface SessionList {
  data: ListedSessionRow[]
  pagination: { has_more: boolean; next_cursor?: string }
  meta: { read_to?: string | null }
}

export interface ApiDecision {
  event_id: string
  automation_status: 'automated' | 'human' | 'uncertain'
  risk_score: number
  evaluation_phase: string
  decision_status: 'preliminary' | 'final'
  evaluated_at: string
}

export interface ApiSignal {
  signal: string
  role: string
  category: string
  strength: string
  signal_score: number
}

export interface ApiScoreStep {
  kind: string
  signal: string | null
  bound: number | null
  change: number
  total: number
}

export interface ApiScore {
  /** Null where the points of the model that decided are not known. */
  steps: ApiScoreStep[] | null
  without_effect: string[]
  signals: SignalMeaning[]
}

export interface SignalMeaning {
  signal: string
  name: string
  looks_at: string
  false_positives: string
}

export interface ApiCandidate {
  visitor_id: string
  bits: number | null
  components: Record<'agreed' | 'changed' | 'unknown', { name: string }[]> | null
}

export interface ApiIdentification {
  decided_by: string
  bits_needed: number | null
  chosen: ApiCandidate | null
  next: (ApiCandidate & { lost_because: string }) | null
}

export interface ApiSession {
  id: string
  created_at: string
  client_user_id: string | null
  mark: { label: string; reason: string | null; marked_at: string } | null
  decision: ApiDecision
  previous_decisions: ApiDecision[]
  highlights: { key: string; summary: string; evidence?: { signal: string; name: string }[] }[]
  attribution: { labels: { kind: string; value: string; label: string; confidence: number }[] } | null
  agent: {
    status: string
    provider: string | null
    product: string | null
    purpose: string | null
    method: string | null
  } | null
  network: {
    ip_address: string | null
    location: { country_code: string | null; city: string | null } | null
    routing: { asn: string | null; organization: string | null }
    anonymity: Record<string, boolean | string | null>
  }
  runtime_integrity: Record<string, string>
  visitor_fingerprint: {
    id: string
    confidence: number | null
    resolution: { method: string | null; basis: string | null }
    lifecycle: { first_seen_at: string | null; last_seen_at: string | null; seen_count: number | null }
  } | null
  request: { url: string; referrer: string | null; user_agent: string }
  browser: { name: string | null; version: string | null; engine: string }
  device: { form_factor: string; operating_system: { name: string | null; version: string | null } }
  analysis_coverage: Record<string, boolean | null>
  evidence: {
    sources: string[]
    claimed: string[]
    unchecked: string[]
    missing: string[]
    withheld: { group: string; reason: string }[]
    impossible: string[]
  }
  scoring: { version: string; model: string | null }
  repeats: Record<string, { five_minutes: number; hour: number; day: number }> | null
  signals_fired: ApiSignal[]
  score: ApiScore
  log: { topic: string; partition: number; offset: number }
}

export interface CountedGroup {
  start: string | null
  kind: 'value' | 'other' | 'ended'
  values: Record<string, string | null>
  sessions: number
}

export interface Counts {
  since: string
  until: string
  is_complete: boolean
  sessions: number
  ended: number
  visitors: number | null
  groups: CountedGroup[]
}

export interface One<T> {
  data: T
}

export interface ApiKey {
  id: string
  type: 'publishable' | 'secret'
  environment: string
  name: string
  status: 'active' | 'rotating' | 'revoked'
  client_target: string
  allowed_origins: string[] | null
  scopes: string[] | null
  key_preview: string
  display_key?: string
  last_used_at: string | null
}

export interface Organization {
  name: string
  data_policy?: {
    session_days: number | null
    decision_days: number | null
    visitor_days: number | null
    webhook_days: number | null
    shortens_addresses: boolean
  }
}

export interface ApiModel {
  id: string
  is_standard: boolean
  effective_at: string | null
}

export interface ApiEndpoint {
  id: string
  name: string
  url: string
  status: 'active' | 'disabled'
  disabled_reason: string | null
  flagged_reason: string | null
  event_types: string[]
  signing_secret?: string
  previous_secret_ends_at: string | null
}

export interface ApiDelivery {
  id: string
  endpoint_id: string
  status: 'pending' | 'delivering' | 'succeeded' | 'failed' | 'skipped'
  attempts: number
  next_attempt_at: string | null
  response_status: number | null
  response_body: string | null
  error: string | null
  updated_at: string
}

export interface ApiEvent {
  id: string
  type: string
  subject: { type: string; id: string }
  data: object
  webhook_deliveries: ApiDelivery[]
  created_at: string
}
