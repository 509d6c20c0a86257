/** What a search looks through, in lower case; the index below and the queries must say exactly the same. */
export const sessionSearch = `(search_request || E'\\n' || search_user || E'\\n' || search_events)`

/**
 * A client may ask for results without end, each time with a decision: a session shows this many earlier ones, and as
 * many are found by a part of their id. Each is found by its whole id.
 */
export const maxShownDecisions = 100

/** The length of that many decision ids, a line each. */
export const searchEventsLength = maxShownDecisions * 31 - 1

/**
 * Ids compare byte by byte (collation C), so that paging and "latest" mean the same on every server. Times are epoch
 * milliseconds. JSON that is only handed on is text: a jsonb column refuses \\u0000, which a page can send.
 */
export const ddl = `
  create table sessions (
    session_id text collate "C" primary key,
    organization_id text collate "C" not null,
    environment text not null,
    created_at bigint not null,
    client_user_id text,
    event_id text collate "C" not null,
    evaluated_at bigint not null,
    evaluation_duration_ms integer not null,
    verdict text not null,
    risk_score integer not null,
    phase text not null,
    is_provisional boolean not null,
    manipulation text,
    visitor_id text collate "C",
    visitor text,
    detail text not null,
    search_request text not null,
    search_user text not null,
    search_events text not null
  );
  create table decisions (
    event_id text collate "C" primary key,
    session_id text collate "C" not null,
    organization_id text collate "C" not null,
    environment text not null,
    visitor_id text collate "C",
    log_offset bigint not null,
    evaluated_at bigint not null,
    evaluation_duration_ms integer not null,
    verdict text not null,
    risk_score integer not null,
    phase text not null,
    is_provisional boolean not null,
    manipulation text,
    evidence text not null
  );
  create table client_user_changes (
    event_id text collate "C" primary key,
    session_id text collate "C" not null,
    log_offset bigint not null,
    client_user_id text,
    search_user text not null
  );
  create index on client_user_changes (session_id, log_offset);
  create table visitors (
    organization_id text collate "C" not null,
    environment text not null,
    visitor_id text collate "C" not null,
    first_seen_at bigint not null,
    last_seen_at bigint not null,
    seen_count integer not null,
    event_id text collate "C" not null,
    evaluated_at bigint not null,
    user_agent text not null,
    ip_address text not null,
    storage text not null,
    anchors text not null,
    vector text not null,
    search_text text not null,
    primary key (organization_id, environment, visitor_id)
  );
  create table visitor_sessions (
    organization_id text collate "C" not null,
    environment text not null,
    visitor_id text collate "C" not null,
    session_id text collate "C" not null,
    primary key (organization_id, environment, visitor_id, session_id)
  );
`

export const indexes = `
  create index on sessions (organization_id, environment, evaluated_at, session_id);
  create index on sessions (organization_id, environment, verdict, evaluated_at, session_id);
  create index on sessions (organization_id, environment, visitor_id, evaluated_at, session_id);
  create index on sessions using gin (${sessionSearch} gin_trgm_ops);
  create index on decisions (session_id, log_offset);
  create index on decisions (organization_id, environment, visitor_id, evaluated_at, event_id);
  create index on visitors (organization_id, environment, last_seen_at, visitor_id);
  create index on visitors (organization_id, environment, first_seen_at, visitor_id);
  create index on visitors (organization_id, environment, seen_count, visitor_id);
  create index on visitors using gin (search_text gin_trgm_ops);
`

/** What readers see as views. */
export const tables = ['sessions', 'decisions', 'client_user_changes', 'visitors', 'visitor_sessions']
