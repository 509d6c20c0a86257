import { expectedGateDifferences } from './expected-gate-differences.ts'

/** Differences that are meant, with what they come from. */
export interface Expected {
  reason: string
  /** Matches each of its differences, and no other. */
  lines: RegExp
  /** How many there are: one that is gone, or one more, shows. */
  count: number
}

const id = '\\{[a-zA-Z]+\\}'
const organization = `/v1/organizations/${id}`
const endpoints = `${organization}/webhooks/endpoints`

export const expectedDifferences: Expected[] = [
  ...expectedGateDifferences,
  {
    reason:
      'The published description covers the server SDKs; the collect API is for the other side.',
    lines: /^[A-Z]+ \/v2\/collect\/\S+: added$/,
    count: 5,
  },
  {
    reason: 'IP rotation is in the specification and not in the published description.',
    lines: /^POST \/v1\/agents\/ip-rotation: added$/,
    count: 1,
  },
  {
    reason: 'Requests without JavaScript can be scored.',
    lines: /^POST \/v1\/requests\/score: added$/,
    count: 1,
  },
  {
    reason: 'Whose signatures prove to an organization who an agent is can be said.',
    lines: new RegExp(
      `^(GET|POST|DELETE) ${organization}/agent-directories(/\\{domain\\})?: added$`,
    ),
    count: 3,
  },
  {
    reason: 'Whoever asks for a visitor that was merged learns where it went.',
    lines: /^ApiErrorDetails > merged_into: added$/,
    count: 1,
  },
  {
    reason: 'Any request may be malformed, and its headers too large.',
    lines: /^(GET \/v1\/\S+ 400|[A-Z]+ \/v1\/\S+ 431) application\/json: added$/,
    count: 49,
  },
  {
    reason: 'Who did what in an organization is not in the published description.',
    lines: new RegExp(`^GET ${organization}/audit-log: added$`),
    count: 1,
  },
  {
    reason:
      'Sessions are filtered by much more than their verdict, each parameter may come several times, and a page says how far it read.',
    lines:
      /^GET \/v1\/sessions (query (?!limit|cursor|search|include)|200 application\/json > meta\.read_)/,
    count: 45,
  },
  {
    reason: 'What sessions really were can be said, and is shown with them.',
    lines: /^((POST|DELETE) \/v1\/marks(\/\{markId\})?|Session(Summary|Detail) > mark): added$/,
    count: 4,
  },
  {
    reason: 'A session says which bot or agent it is, and whether that was proven.',
    lines: /^SessionDetail > agent: added$/,
    count: 1,
  },
  {
    reason: 'Counting sessions is not in the published description.',
    lines: /^GET \/v1\/sessions\/aggregates: added$/,
    count: 1,
  },
  {
    reason: 'Erasing and exporting people is not in the published description.',
    lines: new RegExp(
      `^(DELETE|GET) ${organization}/(visitors/{visitorId}|users/{clientUserId})(/export)?: added$`,
    ),
    count: 4,
  },
  {
    reason: 'What operators ask for, and the browser SDK, are endpoints of this server too.',
    lines: /^GET \/(livez|readyz|metrics|openapi\.json|t\.js): added$/,
    count: 5,
  },
  {
    reason:
      'Every endpoint with a key can answer 429, and any endpoint 500 and 503; they are described.',
    lines: /^[A-Z]+ \S+ (429|500|503) application\/json: added$/,
    count: 102,
  },
  {
    reason:
      'A body that is no JSON, too large, or of another content type has a status of its own.',
    lines: /^(POST|PATCH|DELETE) \S+ (400|413|415) application\/json: added$/,
    count: 63,
  },
  {
    reason: 'Revoking a key takes no body: members of one are refused.',
    lines: new RegExp(`^DELETE ${organization}/api-keys/${id} 422 application/json: added$`),
    count: 1,
  },
  {
    reason: 'POSTs that create, or do something once, take an Idempotency-Key.',
    lines: /^POST \S+ header Idempotency-Key: added$/,
    count: 11,
  },
  {
    reason:
      'A repetition that comes too early, a limit on keys, or a key that is rotating already is a conflict; an Idempotency-Key may be invalid.',
    lines: new RegExp(
      `^POST ${organization}/api-keys(/${id}/rotations 422|/${id}/rotations 409| 409) application/json: added$`,
    ),
    count: 3,
  },
  {
    reason:
      'A repetition that comes too early, a limit on endpoints, secrets in use, an endpoint that is disabled or that services need is a conflict; an Idempotency-Key may be invalid.',
    lines: new RegExp(
      `^(POST|PATCH|DELETE) ${endpoints}(/${id}/(rotations|test) 422|/${id}/(rotations|test) 409|/${id} 409| 409) application/json: added$`,
    ),
    count: 7,
  },
  {
    reason: 'Disabling takes no body, and the list no offset: either is refused.',
    lines: new RegExp(`^(DELETE ${endpoints}/${id}|GET ${endpoints}) 422 application/json: added$`),
    count: 2,
  },
  {
    reason: 'An update names something; a URL has 2,000 characters at most.',
    lines: new RegExp(
      `^(POST|PATCH) ${endpoints}\\S* body application/json (minProperties: 1|> url maxLength: 2000) here, none published$`,
    ),
    count: 3,
  },
  {
    reason: 'Endpoints say why they are disabled or flagged, deliveries when they are tried again.',
    lines:
      /^(WebhookEndpoint > ((disabled|flagged)_reason|previous_secret_ends_at)|WebhookDelivery > next_attempt_at): added$/,
    count: 4,
  },
  {
    reason: 'Events have ids of the form evt_, as the specification says.',
    lines:
      /^(Event > id|WebhookTest > event_id|WebhookDelivery > event_id|GET \S+ path eventId) pattern: "\^evt_.*" here, "\^wevt_/,
    count: 4,
  },
  {
    reason: 'Ids of sessions of the earlier form are taken, as the specification says.',
    lines:
      /^(GET|PATCH) \/v1\/sessions\/\{sessionId\} path sessionId pattern: "\^sid_.*\|\^\[0-9a-fA-F\]\{32\}\$" here/,
    count: 2,
  },
  {
    reason:
      'Names have a length of 1 to 120 (organizations) or 1 to 100 characters (keys, webhook endpoints, services).',
    lines:
      /^(POST|PATCH) \S+ body application\/json > name (minLength|maxLength): \d+ here, none published$/,
    count: 11,
  },
  {
    reason:
      'A slug has 1 to 63 lower-case letters, digits and hyphens, in any order, as the specification says.',
    lines:
      /^(POST \/v1\/organizations body application\/json|Organization) > slug (minLength|maxLength|pattern): /,
    count: 4,
  },
  {
    reason: 'client_user_id has at least one character; null clears it.',
    lines: /^PATCH \S+ body application\/json > client_user_id minLength: 1 here, none published$/,
    count: 1,
  },
  {
    reason: 'Allowed origins are at most 50; `https://*.example.com` is no URI.',
    lines:
      /> allowed_origins(\[\] format: none here, "uri" published| maxItems: 50 here, none published)$/,
    count: 6,
  },
  {
    reason: 'The specification has client_target on keys, and when they are made.',
    lines: /^(POST \S+ body application\/json|ApiKey|IssuedApiKey) > client_target: added$/,
    count: 3,
  },
  {
    reason: 'An organization says what is recorded of its visitors, and for how long.',
    lines: /^Organization > data_policy: added$/,
    count: 1,
  },
  {
    reason: 'The scope list has agents:ip_rotation.',
    lines: /> scopes\[\] enum: \["\*","agents:ip_rotation",/,
    count: 4,
  },
  {
    reason: 'Limits belong to organizations: rate_limit of a key is always null.',
    lines:
      /^(ApiKey|IssuedApiKey) > rate_limit (type: \[\] here, \["integer"\] published|minimum: none here, 1 published)$/,
    count: 4,
  },
  {
    reason: 'A key is revealed only in the answer that makes it.',
    lines: /^ApiKey > revealed_key: not here$/,
    count: 1,
  },
  {
    reason: 'Every error leads to its documentation.',
    lines: /^ApiErrorEnvelope > error\.docs_url required: true here, false published$/,
    count: 1,
  },
  {
    reason: 'The members of details are all listed.',
    lines: /^ApiErrorDetails other members: false here, true published$/,
    count: 1,
  },
  {
    reason: 'The nine names of runtime integrity are those of the specification.',
    lines:
      /^SessionRuntimeIntegrity > ((tampering|developer_tools|emulation|virtualization|privacy_hardening|identity_spoofing|replay): not here|([a-z]+_)+(detected|suspected|identity): added)$/,
    count: 15,
  },
  {
    reason:
      'Session detail says what was consulted: false and clean are no answer where nothing was.',
    lines: /^SessionDetail > evidence: added$/,
    count: 1,
  },
  {
    reason:
      'The scoring model is not in the published description; a decision says which one made it.',
    lines: /^(GET \/v1\/scoring\/model|SessionDetail > scoring): added$/,
    count: 2,
  },
  {
    reason: 'what a session has in common with others, and whether a device vouched for its app',
    lines: /^SessionDetail > (repeats|analysis_coverage\.attestation): added$/,
    count: 2,
  },
  {
    reason: 'Details of sessions and visitors say why a session is of its visitor, when asked.',
    lines:
      /^(SessionDetail|VisitorFingerprintDetail) > identification: added$|^GET .*Id\} query include: added$/,
    count: 4,
  },
  {
    reason: 'A list says how its sessions were tied to their visitors, when asked.',
    lines: /^GET \/v1\/sessions query include: added$|^VisitorFingerprintLink > resolution: added$/,
    count: 2,
  },
  {
    reason:
      'A session says how its score came about, and where its decision is on the log, when asked.',
    lines: /^SessionDetail > (score|log): added$/,
    count: 2,
  },
  {
    reason: 'A list says what its sessions are filtered by.',
    lines: /^SessionSummary > facts: added$/,
    count: 1,
  },
  {
    reason: 'People correct visitors.',
    lines: /^POST .*\/visitors\/\{visitorId\}\/(splits|merges): added$/,
    count: 2,
  },
  {
    reason: 'Session detail has behavior, as the specification says.',
    lines: /^SessionDetail > behavior: added$/,
    count: 1,
  },
  {
    reason: 'Visitors do not expire: expires_at is always the same.',
    lines: /^VisitorFingerprint(Summary|Detail) > lifecycle\.expires_at (enum|format): /,
    count: 4,
  },
  {
    reason: 'What always has a value here is never null.',
    lines:
      /^(Organization > updated_at|SessionSummary > created_at|SessionDetail > created_at|ManipulationSummary > (score|verdict)|SessionDetailDecision > evaluation_phase|SessionWebBotAuth > status|VisitorFingerprintDetail > activity\.sessions\[\]\.score_breakdown\.categories) null: false here, true published$/,
    count: 8,
  },
  {
    reason: 'The values of web_bot_auth.status are listed.',
    lines:
      /^SessionWebBotAuth > status enum: \["absent","invalid","unknown_key","verified"\] here, none published$/,
    count: 1,
  },
  {
    reason: 'The specification bounds these lists.',
    lines:
      /^(VisitorFingerprintDetail > activity\.sessions maxItems: 100|SessionDetail > highlights maxItems: 5) here, none published$/,
    count: 2,
  },
  {
    reason: 'A page address is shown as the client sent it, which need not be a URI.',
    lines: /request\.url format: none here, "uri" published$/,
    count: 2,
  },
  {
    reason: 'What was stored was checked when it came.',
    lines: /^Organization > name minLength: none here, 1 published$/,
    count: 1,
  },
]
