import {
  column,
  nullable,
  primaryKey,
  type RowOf,
  table,
  untrustedText,
} from '../../infra/postgres/table.ts'
import type { SubscribableType } from '../../infra/wire/webhooks/events.ts'
import type {
  Environment,
  Manipulation,
  MarkLabel,
  Phase,
  SessionScored,
  Verdict,
  VisitorAnchors,
  VisitorLink,
  VisitorStorage,
} from '../../schemas/events.ts'
import { factColumns, factNames, markColumns } from './facts.ts'

/** Limits the earlier decisions in a session's detail, because a client can cause any number of them. */
export const maxEarlierDecisions = 100

/** Types of webhook events that decisions raise. */
export const sessionEventTypes = [
  'session.fingerprint.calculated',
  'session.result.persisted',
] as const satisfies SubscribableType[]
export type SessionEventType = (typeof sessionEventTypes)[number]

export type LinkedVisitor = Pick<
  VisitorLink,
  'id' | 'confidence' | 'identified_at' | 'method' | 'basis'
>

/** Members of a decision that its row lacks, for hand-offs, webhook events and visitor activity. */
export interface DecisionEvidence
  extends Pick<
    SessionScored,
    'request' | 'score_breakdown' | 'signals_fired' | 'attribution' | 'hand_off' | 'agent'
  > {
  visitor: LinkedVisitor | null
  /** Operating system, as named in events. */
  platform: SessionScored['device']['operating_system']['name']
}

// Times are epoch milliseconds in all tables of this file.
const decisionColumns = {
  evaluated_at: column.bigint(),
  evaluation_duration_ms: column.integer(),
  verdict: column.text<Verdict>(),
  risk_score: column.integer(),
  phase: column.text<Phase>(),
  is_provisional: column.boolean(),
  manipulation: nullable(column.json<Manipulation>()),
}

/** Ids of search texts, cleared like the facts when decisions expire. */
const pageTextColumns = {
  page_text: nullable(column.bytea()),
  agent_text: nullable(column.bytea()),
  address_text: nullable(column.bytea()),
}

/** A flat row per session, for lists, filters and counts. docs/reference/session-facts.md describes the columns. */
export const sessions = table(
  'sessions',
  {
    session_id: primaryKey(column.id()),
    organization_id: column.id(),
    environment: column.text<Environment>(),
    created_at: column.bigint(),
    client_user_id: nullable(column.text()),
    event_id: column.id(),
    ...decisionColumns,
    visitor_id: nullable(column.id()),
    visitor: nullable(column.json<LinkedVisitor>()),
    ...pageTextColumns,
    user_text: nullable(column.bytea()),
    key_id: nullable(column.id()),
    ...markColumns,
    ...factColumns,
    /** Codes of `signals` for the index; null like `signals`. */
    signal_codes: nullable(column.id()),
  },
  {
    packed: factNames,
    // Index-only scans need vacuumed pages, and the newest sessions are read most, so vacuum often.
    storage: 'autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.01',
  },
)

/**
 * Decisions, each with its event as Avro, which takes 2.3 KB instead of 6.5 KB of JSON. Reading events from the log
 * would be too slow, and Kafka deletes records after its retention period.
 */
export const decisions = table('decisions', {
  event_id: primaryKey(column.id()),
  session_id: column.id(),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  visitor_id: nullable(column.id()),
  log_partition: column.integer(),
  log_offset: column.bigint(),
  /** Arrival time of the observations that triggered the decision. */
  observed_at: column.bigint(),
  ...decisionColumns,
  /** Event as encoded on the log. */
  event: column.bytea(),
})

/** Columns of a `DecisionRow`. The sessions table has them, too. */
export const decisionFields = [
  'event_id',
  'verdict',
  'risk_score',
  'phase',
  'is_provisional',
  'manipulation',
  'evaluation_duration_ms',
  'evaluated_at',
] as const
export type DecisionRow = Pick<RowOf<typeof decisions>, (typeof decisionFields)[number]>
export type DecisionSummary = Omit<DecisionRow, 'manipulation' | 'evaluation_duration_ms'>
export type FullDecisionRow = DecisionRow &
  DecisionEvidence &
  Pick<RowOf<typeof decisions>, 'session_id' | 'organization_id' | 'environment'>

export const clientUserChanges = table('client_user_changes', {
  event_id: primaryKey(column.id()),
  session_id: column.id(),
  log_offset: column.bigint(),
  client_user_id: nullable(column.text()),
  user_text: nullable(column.bytea()),
})

/** Labels that customers gave to sessions. The newest in log order applies. */
export const sessionMarks = table(
  'session_marks',
  {
    mark_id: column.id(),
    session_id: column.id(),
    organization_id: column.id(),
    environment: column.text<Environment>(),
    event_id: column.id(),
    log_offset: column.bigint(),
    label: column.text<MarkLabel>(),
    reason: nullable(column.text()),
    marked_at: column.bigint(),
    /** Removed marks are kept, so that a repeated event does not restore them. */
    is_removed: column.boolean(),
  },
  { key: ['mark_id', 'session_id'] },
)
export type StoredMark = RowOf<typeof sessionMarks>

export const visitors = table(
  'visitors',
  {
    organization_id: column.id(),
    environment: column.text<Environment>(),
    visitor_id: column.id(),
    first_seen_at: column.bigint(),
    last_seen_at: column.bigint(),
    /** Number of distinct sessions. */
    seen_count: column.integer(),
    event_id: column.id(),
    evaluated_at: column.bigint(),
    user_agent: untrustedText(column.text()),
    ip_address: untrustedText(column.text()),
    storage: column.json<VisitorStorage>(),
    anchors: column.json<VisitorAnchors>(),
    vector: column.json<number[]>(),
    agent_text: column.bytea(),
    address_text: column.bytea(),
  },
  { key: ['organization_id', 'environment', 'visitor_id'] },
)

export const visitorSessions = table(
  'visitor_sessions',
  {
    organization_id: column.id(),
    environment: column.text<Environment>(),
    visitor_id: column.id(),
    session_id: column.id(),
  },
  { key: ['organization_id', 'environment', 'visitor_id', 'session_id'] },
)

/**
 * Searchable texts in NFC and lower case: pages, user agents, addresses and client user ids. Sessions and visitors of a
 * scope share them, because the trigram index is expensive and few texts are new.
 */
export const searchTexts = table('search_texts', {
  /** Hash of scope and text. */
  id: primaryKey(column.bytea()),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  text: column.text(),
})

/** Webhook events of reassignments, and of a session's first final decision and first decision with a visitor. */
export const sessionEvents = table('session_events', {
  id: primaryKey(column.id(), 'event_id'),
  organization_id: column.id(),
  environment: column.text<Environment>(),
  type: column.text<SessionEventType>(),
  created_at: column.bigint(),
  decision_id: column.id(),
  /** New visitor of a reassignment; otherwise null, and the decision has the visitor. */
  visitor: nullable(column.json<LinkedVisitor>()),
  /** Set for reassignments only. */
  session_id: nullable(column.id()),
})

export const sessionApplyIndexes = `
  create index on client_user_changes (session_id, log_offset);
  create index on session_marks (session_id, log_offset);
`

/** Disables compression, because events are compressed already, and out-of-line storage, because a row fits on a page. */
export const decisionStorage = `
  alter table decisions alter column event set storage external, set (toast_tuple_target = 8160);
`

/**
 * Indexes for reads. The first covers all filters and counts, and the second the numbers of visitors and users, because
 * reading rows takes ten times as long.
 */
export const sessionReadIndexes = `
  create index on sessions (organization_id, environment, evaluated_at, session_id, verdict, risk_score, scoring_version,
    country, asn, network, page_host, page_path, key_id, browser, os, handed_off_at, mark, ip_address, attribution, signal_codes,
    agent_status, agent_provider);
  create index on sessions (organization_id, environment, verdict, evaluated_at, session_id)
    include (visitor_id, client_user_id, scoring_version);
  create index on sessions (organization_id, environment, visitor_id, evaluated_at, session_id);
  create index on search_texts using gin (text gin_trgm_ops);
  create index on sessions (page_text);
  create index on sessions (agent_text);
  create index on sessions (address_text);
  create index on sessions (user_text) where user_text is not null;
  create index on visitors (agent_text);
  create index on visitors (address_text);
  create index on session_events (organization_id, environment, type, created_at, event_id);
  create index on session_events (session_id) where session_id is not null;
  create index on decisions (session_id, log_offset);
  create index on decisions (organization_id, environment, visitor_id, evaluated_at, event_id);
  create index on visitors (organization_id, environment, last_seen_at, visitor_id);
  create index on visitors (organization_id, environment, first_seen_at, visitor_id);
  create index on visitors (organization_id, environment, seen_count, visitor_id);
`
