// Generated from the .avsc files by `npm run schemas`. Times are epoch milliseconds.

export type ActorType = 'key' | 'operator' | 'person' | 'agent' | 'service' | 'scheduler' | 'other'

/** Cause of an event. */
export interface Actor {
  type: ActorType
  /** Key id, operator command, or another id by type; see docs/internals/glossary.md. */
  id: string
}

export interface Cause {
  actor: Actor
  request_id: null | string
}

export type Environment = 'live' | 'test'

/** Agent data that a decision needed was fetched: the keys of the agent's directory, or the host name of its IP address. */
export interface AgentLookedUp {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  /** Event id (evt_...) of the resulting decision. */
  decision_id: string
  looked_up_at: number
}

/** An encrypted observation batch was accepted. The payload is decrypted, but still deflated. */
export interface BatchReceived {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  document_id_hash: string
  seq: number
  received_at: number
  ip_address: string
  user_agent: string
  /** SHA-256 of the encrypted body, hex. */
  body_hash: string
  /** Raw-deflated JSON observations. */
  payload: Buffer
}

export type DocumentSignatureStatus = 'absent' | 'invalid' | 'unknown_key' | 'signed'

export interface SignedRequest {
  /** URL of the agent's key directory. */
  directory: string
  /** Thumbprint of the key. */
  key_id: string
  /** Possible signature bases, one for each URL of the installation. */
  bases: string[]
  /** The signature, base64. */
  bytes: string
  /** SHA-256 of key and nonce, hex. */
  nonce_hash: string
  /** SHA-256 of the request's body, hex. */
  request_hash: string
}

/** State of the request's signature before its key is fetched. */
export interface DocumentSignature {
  /** signed: well-formed, but not yet verified with its key. */
  status: DocumentSignatureStatus
  /** Reason why the signature is invalid or its key can't be fetched. */
  reason: null | string
  signed: null | SignedRequest
}

/** A document (one page load) was opened in a session. */
export interface DocumentOpened {
  session_id: string
  organization_id: string
  environment: Environment
  /** SHA-256 of the sealed document id, hex; the id itself is not stored. */
  document_id_hash: string
  opened_at: number
  resumed: boolean
  url: string
  referrer: null | string
  user_agent: string
  ip_address: string
  accept_language: null | string
  /** Sec-CH-UA request headers by lower-case name. */
  client_hints: Record<string, string>
  /** Request header names in the order received. */
  header_order: string[]
  /** Host in the Signature-Agent header (Web Bot Auth). */
  signature_agent: null | string
  challenge: string
  timing_nonce: string
  canvas_seed: string
  /** JA4 TLS fingerprint of the opening request, if a trusted edge sent one. */
  ja4: null | string
  /** HTTP/2 fingerprint of the opening request in Akamai's format, if a trusted edge sent one. */
  http2_fingerprint: null | string
  /** Null if the request has no Web Bot Auth headers. */
  signature: null | DocumentSignature
  /** Public key of an app's document, to which the attestation is bound. */
  client_public_key: null | string
}

/** A client reported a network check. */
export interface NetworkChecked {
  check_id: string
  received_at: number
  ip_address: string
  user_agent: string
  /** The JSON as sent, at most 4 KiB. */
  body: string
}

/** The client requested a hand-off. The result is a final SessionScored whose event_id derives from this event_id. */
export interface ResultRequested {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  /** Event id (evt_...) of the resulting decision. */
  decision_id: string
  document_id_hash: string
  seq: number
  received_at: number
  ip_address: string
  user_agent: string
  body_hash: string
  /** Raw-deflated JSON observations. */
  payload: Buffer
}

export type IdleReason = 'idle' | 'expired'

/** No batch arrived for 30 to 40 minutes, or the session is 24 hours old. Scoring makes its decision final. */
export interface SessionIdled {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  /** Event id (evt_...) of the resulting decision. */
  decision_id: string
  idled_at: number
  reason: IdleReason
}

export type Platform = 'web' | 'ios' | 'android'

/** A client opened a session. Its first DocumentOpened follows in the same append. */
export interface SessionOpened {
  session_id: string
  organization_id: string
  environment: Environment
  opened_at: number
  /** Publishable key that opened the session. */
  key_id: string
  platform: Platform
  sdk_name: string
  sdk_version: string
  /** Continuity ids that the client presented (cookie, storage), strongest first. */
  continuity_ids: string[]
  /** Continuity id issued by this session for the next visit. */
  continuity_id: string
}

export type CorrectionKind = 'split' | 'merge' | 'other'

/** A correction moved sessions from one visitor to another. tidegate.sessions.v1 has an event for each session. */
export interface VisitorCorrected {
  organization_id: string
  environment: Environment
  kind: CorrectionKind
  /** split: visitor that loses sessions. merge: visitor that gets them. */
  visitor_id: string
  /** split: new visitor. merge: visitor that no longer exists. */
  other_visitor_id: string
  /** Sessions that were moved. */
  session_ids: string[]
  reason: string
  corrected_at: number
}

/** Sessions of a person were erased, with their data keys and all rows and state derived from them. The event contains no erased data. */
export interface VisitorErased {
  event_id: string
  organization_id: string
  environment: Environment
  /** Id of the erasure. A large erasure has several events, each with some of the sessions. */
  erasure_id: string
  /** Visitor to erase; null if a user was erased. */
  visitor_id: null | string
  /** HMAC of the client user id, hex; null if a visitor was erased. */
  user_digest: null | string
  session_ids: string[]
  erased_visitor_ids: string[]
  /** Visitors that keep other sessions. The visitors in the previous field have none left. */
  changed_visitor_ids: string[]
  counts: Record<string, number>
  erased_at: number
}

/** A use of an agent token extended its expiry. */
export interface AgentTokenRenewed {
  /** Signup that issued the token. */
  gate_session_id: string
  gate_account_id: string
  expires_at: number
  renewed_at: number
}

/** An agent token was revoked. */
export interface AgentTokenRevoked {
  /** Signup that issued the token. */
  gate_session_id: string
  gate_account_id: string
  revoked_at: number
}

/** The agent acknowledged the credentials. They can't be fetched again. */
export interface GateDeliveryAcknowledged {
  gate_session_id: string
  /** Id of the acknowledging request. Repeats of the request have the same id. */
  acknowledgement_id: string
  acknowledged_at: number
}

/** The credentials were not acknowledged in time. They can't be fetched any more. */
export interface GateDeliveryExpired {
  gate_session_id: string
  expired_at: number
}

export interface GateEnvVar {
  name: string
  key: string
  secret: boolean
}

export interface GateSdk {
  label: string
  install: string
  url: string
}

export interface GateBranding {
  logo_url: null | string
  primary_color: null | string
  secondary_color: null | string
  ascii_art: null | string
}

export interface GateConsentLinks {
  terms_url: null | string
  privacy_url: null | string
}

/** Definition of a service by its organization. */
export interface GateServiceDefinition {
  name: string
  description: string
  website: string
  discoverable: boolean
  /** Webhook endpoint (we_...) for approvals; null only for the built-in service. */
  webhook_endpoint_id: null | string
  /** Null: no dashboard login, and no agent tokens. */
  dashboard_login_url: null | string
  docs_url: null | string
  env_vars: GateEnvVar[]
  sdks: GateSdk[]
  branding: GateBranding
  consent: GateConsentLinks
  /** If true, every signup must be claimed with the code that the consent page shows. */
  claim_required: boolean
  /** Lowest verdict of the approving browser. human: inconclusive is refused; null: inconclusive is accepted. */
  minimum_verdict: null | string
}

/** A service was changed. The event contains its full definition. */
export interface GateServiceChanged {
  service_id: string
  organization_id: string
  environment: Environment
  definition: GateServiceDefinition
  changed_at: number
}

/** A service was disabled permanently. Its id stays taken. */
export interface GateServiceDisabled {
  service_id: string
  organization_id: string
  environment: Environment
  disabled_at: number
}

/** The service proved that it controls the registrable domain of its website. Changing the website ends the verification. */
export interface GateServiceDomainVerified {
  service_id: string
  organization_id: string
  environment: Environment
  /** Registrable domain, such as acme.dev for https://www.acme.dev/mail. */
  domain: string
  /** Location of the challenge: dns or file. */
  proof: string
  verified_at: number
}

/** An organization registered a service, which is active at once. */
export interface GateServiceRegistered {
  service_id: string
  organization_id: string
  environment: Environment
  definition: GateServiceDefinition
  registered_at: number
}

/** The operator withdrew a service's verification. */
export interface GateServiceVerificationWithdrawn {
  service_id: string
  organization_id: string
  environment: Environment
  withdrawn_at: number
}

/** The operator verified the service's current name, website and logo. */
export interface GateServiceVerified {
  service_id: string
  organization_id: string
  environment: Environment
  verified_at: number
}

/** A person approved the signup, and the service is asked for the account. The session stays pending until the service answers. */
export interface GateSessionApprovalStarted {
  gate_session_id: string
  gate_account_id: string
  /** Webhook endpoint (we_...) that receives the approval; null: the built-in service. */
  webhook_endpoint_id: null | string
  approve_token_hash: string
  /** Verdict of the approving session: human or inconclusive. */
  verdict: string
  risk_score: number
  /** Session of the consent page (sid_...). */
  proof_session_id: string
  /** Decision about that session (evt_...). */
  proof_decision_id: string
  started_at: number
}

/** The account exists and its credentials are ready to fetch. One event has everything that an approval creates, so the parts can't exist without each other. */
export interface GateSessionApproved {
  gate_session_id: string
  gate_account_id: string
  /** Both delivery envelopes, encrypted with a data key that only the vault has until the delivery ends. */
  delivery_sealed: Buffer
  delivery_expires_at: number
  ack_token_hash: string
  /** HMAC of the agt_ token; null if the service has no dashboard login. */
  agent_token_hash: null | string
  agent_token_expires_at: null | number
  approved_at: number
}

/** The agent sent the right claim code, and the service is asked for the account. */
export interface GateSessionClaimed {
  gate_session_id: string
  gate_account_id: string
  /** Webhook endpoint (we_...) that receives the approval; null: the built-in service. */
  webhook_endpoint_id: null | string
  claimed_at: number
}

/** The agent sent a wrong claim code. */
export interface GateSessionClaimFailed {
  gate_session_id: string
  gate_account_id: string
  failed_at: number
}

/** A person approved the signup. The session stays pending until the agent sends the code that the consent page shows. */
export interface GateSessionClaimRequested {
  gate_session_id: string
  gate_account_id: string
  approve_token_hash: string
  claim_code_hash: string
  /** Verdict of the approving session: human or inconclusive. */
  verdict: string
  risk_score: number
  /** Session of the consent page (sid_...). */
  proof_session_id: string
  /** Decision about that session (evt_...). */
  proof_decision_id: string
  requested_at: number
}

/** Nobody approved or declined before the session expired. */
export interface GateSessionExpired {
  gate_session_id: string
  expired_at: number
}

/** An agent requested a signup, which waits for a person's consent. */
export interface GateSessionOpened {
  /** Gate session (gate_...). Anyone who knows the id can open the consent page. */
  gate_session_id: string
  service_id: string
  /** Organization that owns the service; null: the built-in service. */
  organization_id: null | string
  environment: Environment
  account_name: string
  /** JSON object, as sent. */
  metadata: null | string
  delivery_key_id: string
  /** Raw X25519 public key (base64url) to which the delivery is encrypted. */
  delivery_public_key: string
  /** HMAC of the gtpoll_ token. */
  poll_token_hash: string
  /** IP address of the request, shown on the consent page. */
  requested_ip: null | string
  requested_user_agent: null | string
  opened_at: number
  expires_at: number
  /** Code shown by the agent and on the consent page. */
  confirmation_code: string
  /** supported: the agent can send the code that the consent page shows. Null: the agent did not declare this. */
  claim: null | string
}

export type GateRejection = 'declined' | 'closed' | 'integrator_failed' | 'claim_failed'

/** A pending signup or login was rejected. */
export interface GateSessionRejected {
  gate_session_id: string
  /** declined: by the person; closed: the consent page was closed; integrator_failed: the service did not provide the account; claim_failed: five wrong codes were sent. */
  reason: GateRejection
  /** Problem with the service's response, as text. Never quotes the response. */
  problem: null | string
  rejected_at: number
}

/** Variables that the approving person allowed in the agent's env file. Others go to a separate file. */
export interface GateVariablesAccepted {
  gate_session_id: string
  gate_account_id: string
  /** Names, such as ACME_API_KEY. */
  env_vars: string[]
  accepted_at: number
}

/** The service exchanged the login code for the account. */
export interface LoginCodeConsumed {
  gate_session_id: string
  /** Id of the request that used the code. Repeats of the request have the same id. */
  consumption_id: string
  consumed_at: number
}

/** The login code was not used in time. */
export interface LoginCodeExpired {
  gate_session_id: string
  expired_at: number
}

/** A person approved a dashboard login. Its code can be used once. */
export interface LoginSessionApproved {
  gate_session_id: string
  /** HMAC of the one-time code. */
  code_hash: string
  code_expires_at: number
  approve_token_hash: string
  /** Verdict of the approving session: human or inconclusive. */
  verdict: string
  risk_score: number
  /** Session of the consent page (sid_...). */
  proof_session_id: string
  /** Decision about that session (evt_...). */
  proof_decision_id: string
  approved_at: number
}

/** The holder of an agent token requested a dashboard login, which waits for a person's consent. */
export interface LoginSessionOpened {
  /** gate_... */
  gate_session_id: string
  service_id: string
  /** Organization that owns the service; null: the built-in service. */
  organization_id: null | string
  environment: Environment
  gate_account_id: string
  account_name: string
  /** IP address of the request, shown on the consent page. */
  requested_ip: null | string
  requested_user_agent: null | string
  opened_at: number
  expires_at: number
  /** Code shown by the agent and on the consent page. */
  confirmation_code: string
  /** URL to which the browser is redirected after the approval, as shown on the consent page. */
  dashboard_login_url: string
}

/** A trusted browser answered the deployment's questions. Its answers count as correct. */
export interface EngineAnswersLearned {
  /** blink, gecko or webkit. */
  engine_family: string
  /** User agent of the browser. */
  browser: string
  /** Hashes of the answers, by question. */
  answers: Record<string, string>
  /** Self-reported name of the operator who ran the command, or name of the person in the console. */
  learned_by: string
  learned_at: number
  /** Organization to which the answers apply; null: all organizations, because an operator ran the command. */
  organization_id: null | string
}

/** An operator skipped an unreadable record that blocked its partition. The record stays in its topic, and this event has a copy. */
export interface RecordSkipped {
  skipped_topic: string
  skipped_partition: number
  skipped_offset: number
  reason: string
  /** Self-reported name of the person who ran the command. */
  skipped_by: string
  skipped_at: number
  why_unreadable: string
  record_key: string
  record_headers: Record<string, string>
  record_value: Buffer
}

/** An alert was deleted by a person. The alerts of a deleted view are deleted without this event. */
export interface AlertDeleted {
  organization_id: string
  environment: Environment
  alert_id: string
  view_id: string
  deleted_at: number
}

export type AlertKind = 'count' | 'share' | 'multiple' | 'other'

/** An alert on a saved view was created or changed. */
export interface AlertSaved {
  organization_id: string
  environment: Environment
  alert_id: string
  view_id: string
  kind: AlertKind
  threshold: number
  window_minutes: number
  saved_at: number
}

export interface ApiKeyExpiryChanged {
  organization_id: string
  key_id: string
  /** Null: the key doesn't expire. */
  expires_at: null | number
  changed_at: number
}

export type KeyType = 'publishable' | 'secret'

export type ClientTarget = 'browser' | 'native_ios' | 'native_android'

/** A key was issued. The event can't be used to authenticate: the lookup hash is peppered, and the secret hash is encrypted. */
export interface ApiKeyIssued {
  organization_id: string
  key_id: string
  type: KeyType
  environment: Environment
  name: string
  client_target: ClientTarget
  /** Publishable keys only. */
  allowed_origins: null | string[]
  /** Secret keys only. */
  scopes: null | string[]
  /** HMAC-SHA256 of the key under the pepper, hex. */
  lookup_hash: string
  /** Encrypted SHA-256 of a secret key, used to encrypt tokens for the key. */
  secret_hash_sealed: null | Buffer
  key_preview: string
  /** Full publishable key. */
  display_key: null | string
  /** Key that was replaced by a rotation. */
  replaces_key_id: null | string
  issued_at: number
  /** Null: the key doesn't expire. */
  expires_at: null | number
}

export interface ApiKeyOriginsChanged {
  organization_id: string
  key_id: string
  allowed_origins: string[]
  changed_at: number
}

export interface ApiKeyRenamed {
  organization_id: string
  key_id: string
  name: string
  renamed_at: number
}

export type RevocationReason = 'requested' | 'grace_ended' | 'expired'

export interface ApiKeyRevoked {
  organization_id: string
  key_id: string
  revoked_at: number
  reason: RevocationReason
}

/** The key was replaced. It works until its grace period ends. */
export interface ApiKeyRotated {
  organization_id: string
  key_id: string
  replacement_key_id: string
  rotated_at: number
  grace_expires_at: number
}

export interface ApiKeyScopesChanged {
  organization_id: string
  key_id: string
  scopes: string[]
  changed_at: number
}

export interface OrganizationCapabilityDisabled {
  organization_id: string
  capability: string
  disabled_at: number
}

/** A capability that is off by default was enabled for the organization. */
export interface OrganizationCapabilityEnabled {
  organization_id: string
  /** A string rather than an enum, so that older readers don't mistake an unknown capability for a known one. */
  capability: string
  enabled_at: number
}

export interface OrganizationCreated {
  organization_id: string
  name: string
  slug: string
  created_at: number
}

export interface OrganizationDeleted {
  organization_id: string
  deleted_at: number
}

/** The organization's own limits were set or removed. The event contains all of them. */
export interface OrganizationLimitsChanged {
  organization_id: string
  /** Units per minute for the organization's secret keys; null: the server's default. */
  secret_limit: null | number
  /** Units per minute for the organization's publishable keys; null: the server's default. */
  publishable_limit: null | number
  /** Maximum lifetime of new API keys in days; null: unlimited. */
  max_key_days: null | number
  changed_at: number
}

export interface OrganizationReactivated {
  organization_id: string
  reactivated_at: number
}

export interface OrganizationRenamed {
  organization_id: string
  name: string
  renamed_at: number
}

export interface OrganizationSuspended {
  organization_id: string
  suspended_at: number
}

/** A saved view was deleted by a person, or by the erasure of a visitor or user that it named. */
export interface ViewDeleted {
  organization_id: string
  environment: Environment
  view_id: string
  name: string
  /** Names of the parameters in the view's query, without their values. */
  fields: string[]
  deleted_at: number
}

/** A saved view of the session list was created, renamed or given another query. */
export interface ViewSaved {
  organization_id: string
  environment: Environment
  view_id: string
  name: string
  /** Names of the parameters in the view's query, without their values. */
  fields: string[]
  saved_at: number
}

/** The organization added an agent key directory to those it trusts, or renamed it. */
export interface AgentDirectoryAdded {
  organization_id: string
  /** Host of the directory, in lower case and punycode, with the port unless it is 443. */
  domain: string
  /** Name of the signer; null: the domain. */
  name: null | string
  added_at: number
}

/** The organization no longer trusts an agent key directory. */
export interface AgentDirectoryRemoved {
  organization_id: string
  domain: string
  removed_at: number
}

/** Data of an organization reached the end of its retention. Sessions and their decisions count from the newest decision, visitors from when they were last seen, and webhook events from their creation; null: nothing expired. Read models delete the data, and no later policy restores it. */
export interface OrganizationDataExpired {
  organization_id: string
  sessions_before: null | number
  decisions_before: null | number
  visitors_before: null | number
  webhooks_before: null | number
  expired_at: number
}

/** An organization's data policy was changed, which controls what is recorded about visitors and for how long. The event contains the full policy. Addresses are shortened to IPv4 /24 and IPv6 /48. */
export interface OrganizationDataPolicyChanged {
  organization_id: string
  /** Days to keep sessions. 0: forever; null: the operator's default. */
  session_days: null | number
  /** Days to keep decisions, at most as long as their sessions. */
  decision_days: null | number
  visitor_days: null | number
  webhook_days: null | number
  shortens_addresses: boolean
  allows_minimal_mode: boolean
  /** Columns of read.session_facts that are hidden from analysts; null: the default columns. */
  hidden_facts: null | string[]
  /** If true, session facts are published on tidegate.facts.v1. */
  facts_topic: boolean
  changed_at: number
}

/** A scoring model was scheduled to take effect. The newest change in effect applies, so a later event can replace one that is still scheduled. */
export interface ScoringModelChanged {
  event_id: string
  /** Organization to which the model applies; null: all organizations without their own model. */
  organization_id: null | string
  /** Model id in the release that wrote the event; null if the organization no longer has its own model. */
  model_id: null | string
  /** Model as JSON; null: the standard model of the release that scores. */
  document: null | string
  effective_at: number
  /** Reason given by the operator. */
  reason: string
  changed_at: number
}

/** The customer attached its user id to the session. */
export interface ClientUserAttached {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  client_user_id: string
  attached_at: number
}

/** The customer removed its user id from the session. */
export interface ClientUserCleared {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  cleared_at: number
}

export type MarkLabel = 'human' | 'bot' | 'fraud' | 'legitimate'

/** The customer labeled a session. A mark can cover up to 1,000 sessions, with one event for each. */
export interface SessionMarked {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  mark_id: string
  label: MarkLabel
  /** Reason code chosen by the customer. Restricted to [a-z0-9_]{1,64} to keep out personal data. */
  reason: null | string
  marked_at: number
}

export type Verdict = 'bot' | 'human' | 'inconclusive'

export type Phase = 'snapshot' | 'behavioral'

export type ManipulationVerdict = 'none' | 'low' | 'medium' | 'high'

export interface Manipulation {
  score: number
  verdict: ManipulationVerdict
}

export interface RequestContext {
  url: string
  referrer: null | string
  user_agent: string
  ip_address: string
  screen_size: null | string
  is_touch_capable: null | boolean
}

export type ResolutionMethod = 'continuity' | 'fingerprint' | 'fingerprint_evolution' | 'new' | 'native_persistent' | 'native_new' | 'existing' | 'unknown'

export type ResolutionBasis = 'deterministic' | 'probabilistic'

export interface VisitorAnchors {
  webgl_hash: null | string
  parameters_hash: null | string
  audio_hash: null | string
}

export interface VisitorStorage {
  cookies: boolean
  local_storage: boolean
  indexed_db: boolean
  service_worker: boolean
  window_name: boolean
}

/** Match of the session to its visitor, and the data for the visitor read model. */
export interface VisitorLink {
  id: string
  confidence: null | number
  identified_at: number
  method: ResolutionMethod
  basis: null | ResolutionBasis
  /** Continuity id that now resolves to this visitor. */
  continuity_id: null | string
  anchors: VisitorAnchors
  vector: number[]
  storage: VisitorStorage
}

export type HighlightEffect = 'increases_risk' | 'reduces_risk' | 'context'

export type HighlightImportance = 'high' | 'medium' | 'low'

export interface HighlightEvidence {
  signal: string
  name: string
}

export interface Highlight {
  key: string
  effect: HighlightEffect
  importance: HighlightImportance
  summary: string
  evidence: null | HighlightEvidence[]
}

export type AttributionKind = 'actor' | 'provider' | 'tool' | 'product' | 'organization' | 'purpose' | 'environment' | 'trust' | 'evasion'

export interface AttributionLabel {
  kind: AttributionKind
  value: string
  label: string
  confidence: number
}

export type BehaviorChannel = 'typing' | 'form' | 'mouse' | 'touch' | 'scroll' | 'clipboard'

export interface AttributionBehavior {
  channel: BehaviorChannel
  value: string
  label: string
  confidence: number
}

export interface Attribution {
  labels: AttributionLabel[]
  behaviors: AttributionBehavior[]
}

export interface WebBotAuth {
  status: null | string
  domain: null | string
}

export type IpVersion = 'ipv4' | 'ipv6'

export type NetworkStatus = 'pending' | 'ready' | 'skipped' | 'error'

export interface NetworkLocation {
  city: null | string
  region: null | string
  country: null | string
  country_code: null | string
  latitude: null | number
  longitude: null | number
  timezone: null | string
  postal_code: null | string
  accuracy_radius_km: null | number
}

export interface NetworkRouting {
  asn: null | string
  organization: null | string
}

export interface NetworkAnonymity {
  vpn: boolean
  proxy: boolean
  tor: boolean
  relay: boolean
  hosting: boolean
  residential_proxy: boolean
  callback_proxy: boolean
  provider: null | string
}

export interface NetworkReputation {
  listed: boolean
  categories: string[]
  suspicious_network: boolean
}

export interface NetworkEvidence {
  risk_signals: string[]
  operator_tags: string[]
  client_types: string[]
  client_count: null | number
}

export interface Network {
  ip_address: null | string
  ip_version: null | IpVersion
  status: NetworkStatus
  summary: null | string
  location: null | NetworkLocation
  routing: NetworkRouting
  anonymity: NetworkAnonymity
  reputation: NetworkReputation
  evidence: NetworkEvidence
  evaluated_at: null | number
}

export type IntegrityLevel = 'clean' | 'notice' | 'elevated' | 'high_risk'

export interface RuntimeIntegrity {
  tampering_detected: IntegrityLevel
  developer_tools_detected: IntegrityLevel
  emulation_suspected: IntegrityLevel
  virtualization_suspected: IntegrityLevel
  privacy_hardening_suspected: IntegrityLevel
  identity_spoofing_suspected: IntegrityLevel
  replay_suspected: IntegrityLevel
  outdated_environment: IntegrityLevel
  verified_bot_identity: IntegrityLevel
}

export interface ConnectionFingerprintJa4ReferenceCipherCount {
  min: number
  max: number
}

export interface ConnectionFingerprintJa4ReferenceExtCount {
  min: number
  max: number
}

export interface ConnectionFingerprintJa4Reference {
  label: string
  source: string
  protocol: string
  tls_version: string
  sni: string
  alpn: string
  cipher_count: ConnectionFingerprintJa4ReferenceCipherCount
  ext_count: ConnectionFingerprintJa4ReferenceExtCount
  sample_size: number
  verified: null | boolean
}

export interface ConnectionFingerprintJa4 {
  hash: null | string
  profile: null | string
  family: null | string
  product: null | string
  confidence: null | string
  match_source: null | string
  deterministic: null | boolean
  reference: null | ConnectionFingerprintJa4Reference
}

export interface ConnectionFingerprintHttp2 {
  akamai_fingerprint: null | string
  profile: null | string
}

export type UserAgentAlignment = 'match' | 'mismatch' | 'unknown'

export interface ConnectionFingerprint {
  ja4: ConnectionFingerprintJa4
  http2: ConnectionFingerprintHttp2
  user_agent_alignment: null | UserAgentAlignment
}

export interface Browser {
  name: null | string
  version: null | string
  major_version: null | string
  engine: string
  app_name: null | string
}

export interface DeviceOperatingSystem {
  name: null | string
  version: null | string
}

export interface DeviceScreen {
  size: null | string
  color_depth: null | number
  pixel_ratio: null | number
  orientation_type: null | string
}

export interface DeviceLocale {
  timezone: null | string
  primary_language: null | string
  languages: string[]
}

export interface DeviceCapabilitiesTouch {
  available: null | boolean
  max_touch_points: null | number
}

export interface DeviceCapabilitiesStorage {
  cookies: null | boolean
  local_storage: null | boolean
  indexed_db: null | boolean
  service_worker: null | boolean
  window_name: null | boolean
}

export interface DeviceCapabilitiesWebgpu {
  available: null | boolean
}

export interface DeviceCapabilitiesPlatformAuthenticator {
  available: null | boolean
  conditional_mediation: null | boolean
}

export interface DeviceCapabilitiesMediaDevices {
  available: null | boolean
}

export interface DeviceCapabilitiesSpeechSynthesis {
  available: null | boolean
}

export interface DeviceCapabilities {
  touch: DeviceCapabilitiesTouch
  storage: DeviceCapabilitiesStorage
  webgpu: DeviceCapabilitiesWebgpu
  platform_authenticator: DeviceCapabilitiesPlatformAuthenticator
  media_devices: DeviceCapabilitiesMediaDevices
  speech_synthesis: DeviceCapabilitiesSpeechSynthesis
}

export interface Device {
  form_factor: string
  operating_system: DeviceOperatingSystem
  architecture: null | string
  screen: DeviceScreen
  locale: DeviceLocale
  capabilities: DeviceCapabilities
}

export interface AnalysisCoverage {
  browser: boolean
  device: boolean
  network: boolean
  runtime: boolean
  behavioral: boolean
  visitor_identity: boolean
  /** True if the app was attested. Null for pages. */
  attestation: null | boolean
}

export interface WithheldPart {
  group: string
  reason: string
}

export interface SessionEvidence {
  /** Data sources that were consulted. */
  sources: string[]
  /** Members that are false, clean or empty only because no source was consulted. */
  unchecked: string[]
  /** Absent members that the SDK always sends. */
  missing: string[]
  /** Absent parts of the snapshot with the reason: blocked, unsupported or late. */
  withheld: WithheldPart[]
  /** Members with a value that no browser has. */
  impossible: string[]
  /** Unverified members that the app reported about itself and its device. */
  claimed: string[]
}

export interface SignalFired {
  signal: string
  role: string
  category: string
  strength: string
  /** Kind of observation. Signals of the same channel don't confirm each other. */
  channel: string
  signal_score: number
}

export interface TelemetryNavigator {
  platform: null | string
  vendor: null | string
  hardware_concurrency: null | number
  device_memory: null | number
  max_touch_points: null | number
  pdf_viewer_enabled: null | boolean
  cookie_enabled: null | boolean
  product_sub: null | string
  primary_language: null | string
  languages: string[]
  mime_types_count: null | number
  plugins: string[]
}

export interface TelemetryStorage {
  cookies: null | boolean
  local_storage: null | boolean
  session_storage: null | boolean
  indexed_db: null | boolean
  service_worker: null | boolean
  window_name: null | boolean
}

export interface TelemetryCanvas {
  hash: null | string | number
  geometry_hash: null | string | number
  text_hash: null | string | number
  winding: null | boolean
  noise_detected: null | boolean
  offscreen_consistent: null | boolean
}

export interface TelemetryGraphicsWebgl {
  vendor: null | string
  renderer: null | string
  version: null | string
  shading_language_version: null | string
  parameters_hash: null | string | number
  extensions_hash: null | string | number
  extension_parameters_hash: null | string | number
  shader_precision_hash: null | string | number
}

export interface TelemetryGraphicsWebgpu {
  available: null | boolean
  adapter_vendor: null | string
  adapter_architecture: null | string
  fallback_adapter: null | boolean
  features_hash: null | string | number
  limits_hash: null | string | number
}

export interface TelemetryGraphics {
  webgl: TelemetryGraphicsWebgl
  webgpu: TelemetryGraphicsWebgpu
}

export interface TelemetryAudio {
  hash: null | string | number
  sample_rate: null | number
  channel_count: null | number
  voice_count: null | number
  local_voice_count: null | number
  default_voice_lang: null | string
  noise_detected: null | boolean
}

export interface TelemetryFonts {
  detected_count: null | number
  tested_count: null | number
  enumeration_hash: null | string | number
  metrics_hash: null | string | number
  preferences_hash: null | string | number
  emoji_hash: null | string | number
}

export interface TelemetryMedia {
  device_count: null | number
  counts_by_kind: Record<string, number>
  blank_label_count: null | number
  topology_hash: null | string | number
}

export interface ClientTelemetry {
  navigator: TelemetryNavigator
  storage: TelemetryStorage
  canvas: TelemetryCanvas
  graphics: TelemetryGraphics
  audio: TelemetryAudio
  fonts: TelemetryFonts
  media: TelemetryMedia
}

export interface NativeJailbreakOrRoot {
  detected: boolean
  signals: string[]
  present_paths: null | string[]
  dyld_insert_libraries: null | string[]
  verified_boot_state: null | string
  magisk_mount_present: null | boolean
  su_on_path: null | boolean
}

export interface NativeHooks {
  detected: boolean
  frida_ports: null | number[]
  frida_thread_names: null | string[]
  hooked_symbols: null | string[]
  self_hooked_symbols: null | string[]
  prologue_anomaly_count: null | number
  unexpected_dyld_images: null | string[]
  xposed_packages: null | string[]
}

export interface NativeDebugger {
  attached: boolean
  tracer_pid: null | number
  breakpoint_count: null | number
  watchpoint_thread_count: null | number
}

export interface NativeCodeSigning {
  invalid: boolean
  code_sign_valid: null | boolean
  text_integrity_ok: null | boolean
  application_debuggable: null | boolean
  dyld_insert_libraries: null | string[]
}

export interface NativeSimulatorOrEmulator {
  detected: boolean
  is_ios_app_on_mac: null | boolean
  qemu_files: null | string[]
  ro_hardware: null | string
  ro_product_model: null | string
  simulator_env_keys: null | string[]
}

export interface NativeHardwareClaimsMismatch {
  detected: boolean
  signals: string[]
}

export interface NativeSimPosture {
  detected: boolean
  signals: string[]
}

export interface NativeAppProvenance {
  detected: boolean
  signals: string[]
}

export interface NativeDebugPosture {
  detected: boolean
  adb_enabled: null | boolean
  developer_options_enabled: null | boolean
  app_debuggable: null | boolean
  app_profileable: null | boolean
  app_test_only: null | boolean
  debugger_attached: null | boolean
  get_task_allow: null | boolean
  embedded_provisioning_profile_present: null | boolean
  receipt_is_sandbox: null | boolean
  receipt_is_testflight: null | boolean
  development_bundle: null | boolean
  active_debugger_attached: null | boolean
  breakpoint_count: null | number
  exception_port_count: null | number
  watchpoint_thread_count: null | number
  tracer_pid: null | number
  direct_syscall_tracer_pid: null | number
  risk_signals: string[]
}

export interface NativeRuntimeIntegrity {
  platform: string
  jailbreak_or_root: NativeJailbreakOrRoot
  hooks: NativeHooks
  debugger: NativeDebugger
  code_signing: NativeCodeSigning
  simulator_or_emulator: NativeSimulatorOrEmulator
  hardware_claims_mismatch: NativeHardwareClaimsMismatch
  sim_posture: NativeSimPosture
  app_provenance: NativeAppProvenance
  debug_posture: NativeDebugPosture
}

export interface NativeApp {
  bundle_id: string
  app_version: null | string
  app_build: null | string
  install_time_epoch_ms: null | number
  provisioning_team: null | string
}

export interface NativeCarrier {
  platform: string
  carrier_name: null | string
  country_iso: null | string
  mcc: null | string
  mnc: null | string
  phone_type: null | string
  network_type: null | string
  radio_access: string[]
}

export interface NativeMotionAxes {
  bias: number[]
  noise: number[]
}

export interface NativeMotionPrint {
  platform: string
  sample_count: number
  gyro: NativeMotionAxes
  accel: NativeMotionAxes
  mag: null | NativeMotionAxes
}

export interface DetailDeviceIdentityLifecycle {
  first_seen_at: string
  last_seen_at: string
  seen_count: number
}

export interface DetailDeviceIdentity {
  object: string
  id: string
  confidence: number
  source: string
  platform: string
  identified_at: string
  lifecycle: DetailDeviceIdentityLifecycle
  matched_anchors: string[]
}

/** Evidence from the document that handed off. */
export interface HandOffEvidence {
  challenge_answered: boolean
  input_observed: boolean
  binding: null | string
}

export interface WindowCounts {
  five_minutes: number
  hour: number
  day: number
}

/** Counts over the time windows that end with the decision, including this session. */
export interface Repeats {
  address_sessions: WindowCounts
  network_sessions: WindowCounts
  visitor_sessions: WindowCounts
  snapshot_sessions: WindowCounts
  behavior_sessions: WindowCounts
  address_visitors: WindowCounts
  visitor_addresses: WindowCounts
  visitor_users: WindowCounts
  user_visitors: WindowCounts
}

/** Answers of a document, used for learning. They contain no text from the client and can't be traced to the person. */
export interface GivenAnswers {
  /** Hash of the engine and version claimed by the browser. */
  engine: null | string
  /** Engine claimed by the browser: blink, gecko or webkit. Answers to the deployment's own questions are learned per engine. */
  engine_family: null | string
  /** Hash of the renderer, operating system, browser and version claimed by the browser. */
  canvas_class: null | string
  canvas_seed: null | string
  /** Hash of the canvas answer. */
  canvas_answer: null | string
  /** Hashes of the answers, by question. */
  engine_answers: Record<string, string>
  /** Hash of the second and third part of JA4, used to learn the handshakes of engine_family; null if another risk signal fired. */
  handshake: null | string
  /** HMAC of the visitor under a monthly key that is later deleted. */
  visitor_digest: string
  /** HMAC of the network (/24 or /48) under the same key. */
  network_digest: string
  /** True if no other risk signal fired. Only such answers are learned from. */
  is_consistent: boolean
}

export interface Sdk {
  name: string
  version: string
}

export type DecisionReason = 'first' | 'changed' | 'hand_off' | 'idle' | 'looked_up'

export type AgentStatus = 'none' | 'declared' | 'signed' | 'verified' | 'spoofed'

/** Evidence from the checks. Null: not checked, or no result yet. */
export interface AgentEvidence {
  catalogue_id: null | string
  /** Host in the Signature-Agent header. */
  domain: null | string
  /** Thumbprint of the signing key. */
  key_id: null | string
  /** Host name of the address, if it resolves back to the address. */
  host_name: null | string
  /** Published ranges in which the address was looked up. */
  list: null | string
  /** Reason why the signature was not accepted. */
  reason: null | string
  /** Time when the key directory or host name was fetched. */
  fetched_at: null | number
}

/** Bot or agent that the session claims to be, and whether the claim was verified. */
export interface SessionAgent {
  status: AgentStatus
  provider: null | string
  product: null | string
  purpose: null | string
  /** Check that decided the status: signature, reverse_dns or published_ranges. */
  method: null | string
  evidence: null | AgentEvidence
}

export type AttestationStatus = 'unverified' | 'valid' | 'invalid'

/** Installation of the app on a device, with this attestation included. */
export interface AttestedDevice {
  id: string
  /** Public key for App Attest: SPKI, DER, base64. */
  public_key: null | string
  /** Last counter of the key; 0 if there is none. */
  counter: number
  first_seen_at: number
  last_seen_at: number
  /** Number of sessions. */
  seen_count: number
}

/** Result of verifying the attestation that an app sent. */
export interface SessionAttestation {
  /** unverified: not checked, because the app or key is unknown. */
  status: AttestationStatus
  /** app_attest, app_attest_assertion or play_integrity. */
  method: string
  /** Reason why the attestation is not valid. */
  reason: null | string
  /** Attested app: team and bundle id (Apple) or package name (Google). */
  app_id: null | string
  /** Null unless the attestation is valid. */
  device: null | AttestedDevice
}

/** A decision about a session. It contains the full session detail, so consumers need no other topic. */
export interface SessionScored {
  /** Decision (evt_...). Deterministic, so a retry has the same id. */
  event_id: string
  session_id: string
  organization_id: string
  environment: Environment
  /** Time when the session was opened. */
  created_at: number
  evaluated_at: number
  /** Time of the last data from the client. A decision made because the client went silent is later. */
  observed_at: number
  evaluation_duration_ms: number
  scoring_version: string
  verdict: Verdict
  risk_score: number
  phase: Phase
  is_provisional: boolean
  manipulation: null | Manipulation
  /** Points 0-100 by category. */
  score_breakdown: Record<string, number>
  request: RequestContext
  visitor: null | VisitorLink
  highlights: Highlight[]
  attribution: null | Attribution
  web_bot_auth: null | WebBotAuth
  network: Network
  runtime_integrity: RuntimeIntegrity
  connection_fingerprint: ConnectionFingerprint
  browser: Browser
  device: Device
  analysis_coverage: AnalysisCoverage
  evidence: SessionEvidence
  signals_fired: SignalFired[]
  client_telemetry: ClientTelemetry
  native_runtime_integrity: null | NativeRuntimeIntegrity
  native_app: null | NativeApp
  native_carrier: null | NativeCarrier
  native_motion_print: null | NativeMotionPrint
  device_identity: null | DetailDeviceIdentity
  install_id: null | string
  /** Null if the decision was not requested by a hand-off. */
  hand_off: null | HandOffEvidence
  /** SHA-256 of the device data reported by the client, hex. */
  snapshot_hash: null | string
  /** SHA-256 of the input summary, hex; null if there was little input. */
  behavior_hash: null | string
  /** Null if nothing was counted. */
  repeats: null | Repeats
  /** Present in the first final decision about a page that has a visitor, natural input and an answered challenge. */
  given_answers: null | GivenAnswers
  /** Publishable key that opened the session; null if the opening is unknown. */
  key_id: null | string
  platform: null | Platform
  /** SDK as reported by the client; null if the opening is unknown. */
  sdk: null | Sdk
  has_snapshot: boolean
  /** Trigger of the decision: the first snapshot, observations that changed the verdict, a hand-off, the end of the session, or fetched agent data. */
  reason: DecisionReason
  /** Id of the scoring model that turned the signals into the score. */
  model: string
  agent: SessionAgent
  /** Null if none was sent. */
  attestation: null | SessionAttestation
}

/** The customer removed a mark from a session. The previous mark takes effect again. */
export interface SessionUnmarked {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  mark_id: string
  unmarked_at: number
}

/** A session moved to another visitor, because the two visitors were merged. */
export interface VisitorMerged {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  visitor_id: string
  earlier_visitor_id: string
  /** 0 to 100, as in SessionScored. */
  confidence: number
  merged_at: number
}

export type SplitCause = 'continuity_returned' | 'operator'

/** A session moved to a new visitor, because it had been matched to the wrong one. */
export interface VisitorSplit {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  visitor_id: string
  earlier_visitor_id: string
  /** continuity_returned: a stored id that was considered lost returned; operator: moved by a correction. */
  cause: SplitCause
  /** 0 to 100, as in SessionScored. */
  confidence: number
  split_at: number
}

/** A session was matched to a visitor. The event has the data by which scoring recognizes the visitor from then on. */
export interface VisitorLinked {
  session_id: string
  organization_id: string
  environment: Environment
  visitor_id: string
  linked_at: number
  /** Continuity id issued to the client. */
  continuity_id: null | string
  /** Continuity ids that the client presented from earlier sessions. */
  presented_continuity_ids: string[]
  install_id: null | string
  /** Six hash bytes for each component of the fingerprint vector, zeros for unknown ones. Empty if nothing was observed. */
  components: Buffer
  /** True if the components distinguish the device from others of its kind. */
  is_distinctive: boolean
  /** Network (IPv4 /24 or IPv6 /48), if anything was observed. */
  network: null | string
}

export type WebhookAttemptOutcome = 'succeeded' | 'retrying' | 'failed'

/** A delivery attempt ended. */
export interface WebhookDeliveryAttempted {
  event_id: string
  delivery_id: string
  organization_id: string
  environment: Environment
  endpoint_id: string
  /** Number of the attempt, from 1. */
  attempt: number
  /** Time when the request began. */
  attempted_at: number
  duration_ms: number
  /** retrying: another attempt follows; failed: no further attempt. */
  outcome: WebhookAttemptOutcome
  response_status: null | number
  /** Response of the receiver, at most 4,096 bytes; null if not stored. */
  response_body: null | string
  /** Reason for the failure, as text. */
  error: null | string
  next_attempt_at: null | number
  /** Session that the webhook event is about; null for other events. */
  session_subject_id: null | string
}

/** A delivery ended without a request, for example because its endpoint was disabled. */
export interface WebhookDeliverySkipped {
  event_id: string
  delivery_id: string
  organization_id: string
  environment: Environment
  endpoint_id: string
  reason: string
  skipped_at: number
}

export interface EndpointFilter {
  verdicts: null | Verdict[]
  min_risk_score: null | number
}

/** An organization created a webhook endpoint. */
export interface WebhookEndpointCreated {
  organization_id: string
  endpoint_id: string
  /** Environment of the key that created the endpoint. Only its events are sent. */
  environment: Environment
  name: string
  url: string
  /** Subscribed event types. Strings rather than an enum, so that older readers don't mistake an unknown type for a known one. */
  event_types: string[]
  /** Decisions whose session events are sent; null: all. */
  filter: null | EndpointFilter
  /** The signing secret, encrypted under a master key. */
  signing_secret_sealed: Buffer
  created_at: number
}

export type EndpointDisabledReason = 'manual' | 'failing' | 'gone'

/** The endpoint was disabled. */
export interface WebhookEndpointDisabled {
  organization_id: string
  endpoint_id: string
  /** manual: by its owner; failing: no delivery succeeded for days; gone: the endpoint returned 410. */
  reason: EndpointDisabledReason
  disabled_at: number
}

/** A disabled endpoint was enabled. */
export interface WebhookEndpointEnabled {
  organization_id: string
  endpoint_id: string
  enabled_at: number
}

export type EndpointFlaggedReason = 'failing' | 'gone'

/** The endpoint would have been disabled, but an active Gate service sends its approvals there. */
export interface WebhookEndpointFlagged {
  organization_id: string
  endpoint_id: string
  /** failing: no delivery succeeded for days; gone: the endpoint returned 410. */
  reason: EndpointFlaggedReason
  flagged_at: number
}

/** The URL of the endpoint changed. */
export interface WebhookEndpointMoved {
  organization_id: string
  endpoint_id: string
  url: string
  moved_at: number
}

/** A delivery to a flagged endpoint succeeded, so the flag was removed. */
export interface WebhookEndpointRecovered {
  organization_id: string
  endpoint_id: string
  recovered_at: number
}

/** The endpoint was renamed. */
export interface WebhookEndpointRenamed {
  organization_id: string
  endpoint_id: string
  name: string
  renamed_at: number
}

/** The signing secret was rotated. Earlier secrets also sign until they expire. */
export interface WebhookEndpointSecretRotated {
  organization_id: string
  endpoint_id: string
  signing_secret_sealed: Buffer
  rotated_at: number
  /** Time when the previous secret stops signing. */
  previous_expires_at: number
}

/** The subscriptions or the filter of the endpoint changed. The event contains all of them. */
export interface WebhookEndpointSubscriptionsChanged {
  organization_id: string
  endpoint_id: string
  event_types: string[]
  /** Decisions whose session events are sent; null: all. */
  filter: null | EndpointFilter
  changed_at: number
}

export type WebhookRoute = 'queued' | 'direct'

/** A webhook event was raised for the listed endpoints. Only the first record of an event id counts. */
export interface WebhookEventRaised {
  /** Event id (evt_...), derived from its subject, so a retry has the same id. */
  event_id: string
  organization_id: string
  environment: Environment
  type: string
  subject_type: string
  subject_id: string
  /** `data` of the payload as JSON. Every attempt sends these bytes. */
  data: string
  created_at: number
  /** Endpoints, with one delivery each. */
  endpoint_ids: string[]
  /** direct: the code that raised the event sends the requests and waits for the responses, without the queue. */
  route: WebhookRoute
}

/** An ended delivery was started again, with the full retry schedule. */
export interface WebhookRedeliveryRequested {
  event_id: string
  delivery_id: string
  organization_id: string
  environment: Environment
  endpoint_id: string
  requested_at: number
}

/** Types of the events whose records also have a `Cause`. */
export const causedNames = [
  'VisitorCorrected',
  'VisitorErased',
  'AgentTokenRenewed',
  'AgentTokenRevoked',
  'GateDeliveryAcknowledged',
  'GateDeliveryExpired',
  'GateServiceChanged',
  'GateServiceDisabled',
  'GateServiceDomainVerified',
  'GateServiceRegistered',
  'GateServiceVerificationWithdrawn',
  'GateServiceVerified',
  'GateSessionApprovalStarted',
  'GateSessionApproved',
  'GateSessionClaimed',
  'GateSessionClaimFailed',
  'GateSessionClaimRequested',
  'GateSessionExpired',
  'GateSessionOpened',
  'GateSessionRejected',
  'GateVariablesAccepted',
  'LoginCodeConsumed',
  'LoginCodeExpired',
  'LoginSessionApproved',
  'LoginSessionOpened',
  'EngineAnswersLearned',
  'RecordSkipped',
  'AlertDeleted',
  'AlertSaved',
  'ApiKeyExpiryChanged',
  'ApiKeyIssued',
  'ApiKeyOriginsChanged',
  'ApiKeyRenamed',
  'ApiKeyRevoked',
  'ApiKeyRotated',
  'ApiKeyScopesChanged',
  'OrganizationCapabilityDisabled',
  'OrganizationCapabilityEnabled',
  'OrganizationCreated',
  'OrganizationDeleted',
  'OrganizationLimitsChanged',
  'OrganizationReactivated',
  'OrganizationRenamed',
  'OrganizationSuspended',
  'ViewDeleted',
  'ViewSaved',
  'AgentDirectoryAdded',
  'AgentDirectoryRemoved',
  'OrganizationDataExpired',
  'OrganizationDataPolicyChanged',
  'ScoringModelChanged',
  'ClientUserAttached',
  'ClientUserCleared',
  'SessionMarked',
  'SessionUnmarked',
  'WebhookEndpointCreated',
  'WebhookEndpointDisabled',
  'WebhookEndpointEnabled',
  'WebhookEndpointFlagged',
  'WebhookEndpointMoved',
  'WebhookEndpointRecovered',
  'WebhookEndpointRenamed',
  'WebhookEndpointSecretRotated',
  'WebhookEndpointSubscriptionsChanged',
  'WebhookRedeliveryRequested',
] as const
export type CausedName = (typeof causedNames)[number]

export interface EventTypes {
  AgentLookedUp: AgentLookedUp
  BatchReceived: BatchReceived
  DocumentOpened: DocumentOpened
  NetworkChecked: NetworkChecked
  ResultRequested: ResultRequested
  SessionIdled: SessionIdled
  SessionOpened: SessionOpened
  VisitorCorrected: VisitorCorrected
  VisitorErased: VisitorErased
  AgentTokenRenewed: AgentTokenRenewed
  AgentTokenRevoked: AgentTokenRevoked
  GateDeliveryAcknowledged: GateDeliveryAcknowledged
  GateDeliveryExpired: GateDeliveryExpired
  GateServiceChanged: GateServiceChanged
  GateServiceDisabled: GateServiceDisabled
  GateServiceDomainVerified: GateServiceDomainVerified
  GateServiceRegistered: GateServiceRegistered
  GateServiceVerificationWithdrawn: GateServiceVerificationWithdrawn
  GateServiceVerified: GateServiceVerified
  GateSessionApprovalStarted: GateSessionApprovalStarted
  GateSessionApproved: GateSessionApproved
  GateSessionClaimed: GateSessionClaimed
  GateSessionClaimFailed: GateSessionClaimFailed
  GateSessionClaimRequested: GateSessionClaimRequested
  GateSessionExpired: GateSessionExpired
  GateSessionOpened: GateSessionOpened
  GateSessionRejected: GateSessionRejected
  GateVariablesAccepted: GateVariablesAccepted
  LoginCodeConsumed: LoginCodeConsumed
  LoginCodeExpired: LoginCodeExpired
  LoginSessionApproved: LoginSessionApproved
  LoginSessionOpened: LoginSessionOpened
  EngineAnswersLearned: EngineAnswersLearned
  RecordSkipped: RecordSkipped
  AlertDeleted: AlertDeleted
  AlertSaved: AlertSaved
  ApiKeyExpiryChanged: ApiKeyExpiryChanged
  ApiKeyIssued: ApiKeyIssued
  ApiKeyOriginsChanged: ApiKeyOriginsChanged
  ApiKeyRenamed: ApiKeyRenamed
  ApiKeyRevoked: ApiKeyRevoked
  ApiKeyRotated: ApiKeyRotated
  ApiKeyScopesChanged: ApiKeyScopesChanged
  OrganizationCapabilityDisabled: OrganizationCapabilityDisabled
  OrganizationCapabilityEnabled: OrganizationCapabilityEnabled
  OrganizationCreated: OrganizationCreated
  OrganizationDeleted: OrganizationDeleted
  OrganizationLimitsChanged: OrganizationLimitsChanged
  OrganizationReactivated: OrganizationReactivated
  OrganizationRenamed: OrganizationRenamed
  OrganizationSuspended: OrganizationSuspended
  ViewDeleted: ViewDeleted
  ViewSaved: ViewSaved
  AgentDirectoryAdded: AgentDirectoryAdded
  AgentDirectoryRemoved: AgentDirectoryRemoved
  OrganizationDataExpired: OrganizationDataExpired
  OrganizationDataPolicyChanged: OrganizationDataPolicyChanged
  ScoringModelChanged: ScoringModelChanged
  ClientUserAttached: ClientUserAttached
  ClientUserCleared: ClientUserCleared
  SessionMarked: SessionMarked
  SessionScored: SessionScored
  SessionUnmarked: SessionUnmarked
  VisitorMerged: VisitorMerged
  VisitorSplit: VisitorSplit
  VisitorLinked: VisitorLinked
  WebhookDeliveryAttempted: WebhookDeliveryAttempted
  WebhookDeliverySkipped: WebhookDeliverySkipped
  WebhookEndpointCreated: WebhookEndpointCreated
  WebhookEndpointDisabled: WebhookEndpointDisabled
  WebhookEndpointEnabled: WebhookEndpointEnabled
  WebhookEndpointFlagged: WebhookEndpointFlagged
  WebhookEndpointMoved: WebhookEndpointMoved
  WebhookEndpointRecovered: WebhookEndpointRecovered
  WebhookEndpointRenamed: WebhookEndpointRenamed
  WebhookEndpointSecretRotated: WebhookEndpointSecretRotated
  WebhookEndpointSubscriptionsChanged: WebhookEndpointSubscriptionsChanged
  WebhookEventRaised: WebhookEventRaised
  WebhookRedeliveryRequested: WebhookRedeliveryRequested
}

export const eventTopics = {
  AgentLookedUp: 'tidegate.collect.v1',
  BatchReceived: 'tidegate.collect.v1',
  DocumentOpened: 'tidegate.collect.v1',
  NetworkChecked: 'tidegate.collect.v1',
  ResultRequested: 'tidegate.collect.v1',
  SessionIdled: 'tidegate.collect.v1',
  SessionOpened: 'tidegate.collect.v1',
  VisitorCorrected: 'tidegate.corrections.v1',
  VisitorErased: 'tidegate.erasures.v1',
  AgentTokenRenewed: 'tidegate.gate.v1',
  AgentTokenRevoked: 'tidegate.gate.v1',
  GateDeliveryAcknowledged: 'tidegate.gate.v1',
  GateDeliveryExpired: 'tidegate.gate.v1',
  GateServiceChanged: 'tidegate.gate.v1',
  GateServiceDisabled: 'tidegate.gate.v1',
  GateServiceDomainVerified: 'tidegate.gate.v1',
  GateServiceRegistered: 'tidegate.gate.v1',
  GateServiceVerificationWithdrawn: 'tidegate.gate.v1',
  GateServiceVerified: 'tidegate.gate.v1',
  GateSessionApprovalStarted: 'tidegate.gate.v1',
  GateSessionApproved: 'tidegate.gate.v1',
  GateSessionClaimed: 'tidegate.gate.v1',
  GateSessionClaimFailed: 'tidegate.gate.v1',
  GateSessionClaimRequested: 'tidegate.gate.v1',
  GateSessionExpired: 'tidegate.gate.v1',
  GateSessionOpened: 'tidegate.gate.v1',
  GateSessionRejected: 'tidegate.gate.v1',
  GateVariablesAccepted: 'tidegate.gate.v1',
  LoginCodeConsumed: 'tidegate.gate.v1',
  LoginCodeExpired: 'tidegate.gate.v1',
  LoginSessionApproved: 'tidegate.gate.v1',
  LoginSessionOpened: 'tidegate.gate.v1',
  EngineAnswersLearned: 'tidegate.operations.v1',
  RecordSkipped: 'tidegate.operations.v1',
  AlertDeleted: 'tidegate.organizations.v1',
  AlertSaved: 'tidegate.organizations.v1',
  ApiKeyExpiryChanged: 'tidegate.organizations.v1',
  ApiKeyIssued: 'tidegate.organizations.v1',
  ApiKeyOriginsChanged: 'tidegate.organizations.v1',
  ApiKeyRenamed: 'tidegate.organizations.v1',
  ApiKeyRevoked: 'tidegate.organizations.v1',
  ApiKeyRotated: 'tidegate.organizations.v1',
  ApiKeyScopesChanged: 'tidegate.organizations.v1',
  OrganizationCapabilityDisabled: 'tidegate.organizations.v1',
  OrganizationCapabilityEnabled: 'tidegate.organizations.v1',
  OrganizationCreated: 'tidegate.organizations.v1',
  OrganizationDeleted: 'tidegate.organizations.v1',
  OrganizationLimitsChanged: 'tidegate.organizations.v1',
  OrganizationReactivated: 'tidegate.organizations.v1',
  OrganizationRenamed: 'tidegate.organizations.v1',
  OrganizationSuspended: 'tidegate.organizations.v1',
  ViewDeleted: 'tidegate.organizations.v1',
  ViewSaved: 'tidegate.organizations.v1',
  AgentDirectoryAdded: 'tidegate.policies.v1',
  AgentDirectoryRemoved: 'tidegate.policies.v1',
  OrganizationDataExpired: 'tidegate.policies.v1',
  OrganizationDataPolicyChanged: 'tidegate.policies.v1',
  ScoringModelChanged: 'tidegate.policies.v1',
  ClientUserAttached: 'tidegate.sessions.v1',
  ClientUserCleared: 'tidegate.sessions.v1',
  SessionMarked: 'tidegate.sessions.v1',
  SessionScored: 'tidegate.sessions.v1',
  SessionUnmarked: 'tidegate.sessions.v1',
  VisitorMerged: 'tidegate.sessions.v1',
  VisitorSplit: 'tidegate.sessions.v1',
  VisitorLinked: 'tidegate.visitors.v1',
  WebhookDeliveryAttempted: 'tidegate.webhooks.v1',
  WebhookDeliverySkipped: 'tidegate.webhooks.v1',
  WebhookEndpointCreated: 'tidegate.webhooks.v1',
  WebhookEndpointDisabled: 'tidegate.webhooks.v1',
  WebhookEndpointEnabled: 'tidegate.webhooks.v1',
  WebhookEndpointFlagged: 'tidegate.webhooks.v1',
  WebhookEndpointMoved: 'tidegate.webhooks.v1',
  WebhookEndpointRecovered: 'tidegate.webhooks.v1',
  WebhookEndpointRenamed: 'tidegate.webhooks.v1',
  WebhookEndpointSecretRotated: 'tidegate.webhooks.v1',
  WebhookEndpointSubscriptionsChanged: 'tidegate.webhooks.v1',
  WebhookEventRaised: 'tidegate.webhooks.v1',
  WebhookRedeliveryRequested: 'tidegate.webhooks.v1',
} as const

export const partitionKeys: { readonly [E in keyof EventTypes]: (data: EventTypes[E]) => string } = {
  AgentLookedUp: ({ session_id }) => session_id,
  BatchReceived: ({ session_id }) => session_id,
  DocumentOpened: ({ session_id }) => session_id,
  NetworkChecked: ({ check_id }) => check_id,
  ResultRequested: ({ session_id }) => session_id,
  SessionIdled: ({ session_id }) => session_id,
  SessionOpened: ({ session_id }) => session_id,
  VisitorCorrected: ({ organization_id }) => organization_id,
  VisitorErased: ({ organization_id }) => organization_id,
  AgentTokenRenewed: ({ gate_session_id }) => gate_session_id,
  AgentTokenRevoked: ({ gate_session_id }) => gate_session_id,
  GateDeliveryAcknowledged: ({ gate_session_id }) => gate_session_id,
  GateDeliveryExpired: ({ gate_session_id }) => gate_session_id,
  GateServiceChanged: ({ service_id }) => service_id,
  GateServiceDisabled: ({ service_id }) => service_id,
  GateServiceDomainVerified: ({ service_id }) => service_id,
  GateServiceRegistered: ({ service_id }) => service_id,
  GateServiceVerificationWithdrawn: ({ service_id }) => service_id,
  GateServiceVerified: ({ service_id }) => service_id,
  GateSessionApprovalStarted: ({ gate_session_id }) => gate_session_id,
  GateSessionApproved: ({ gate_session_id }) => gate_session_id,
  GateSessionClaimed: ({ gate_session_id }) => gate_session_id,
  GateSessionClaimFailed: ({ gate_session_id }) => gate_session_id,
  GateSessionClaimRequested: ({ gate_session_id }) => gate_session_id,
  GateSessionExpired: ({ gate_session_id }) => gate_session_id,
  GateSessionOpened: ({ gate_session_id }) => gate_session_id,
  GateSessionRejected: ({ gate_session_id }) => gate_session_id,
  GateVariablesAccepted: ({ gate_session_id }) => gate_session_id,
  LoginCodeConsumed: ({ gate_session_id }) => gate_session_id,
  LoginCodeExpired: ({ gate_session_id }) => gate_session_id,
  LoginSessionApproved: ({ gate_session_id }) => gate_session_id,
  LoginSessionOpened: ({ gate_session_id }) => gate_session_id,
  EngineAnswersLearned: ({ engine_family }) => engine_family,
  RecordSkipped: ({ skipped_topic, skipped_partition }) => `${skipped_topic}/${skipped_partition}`,
  AlertDeleted: ({ organization_id }) => organization_id,
  AlertSaved: ({ organization_id }) => organization_id,
  ApiKeyExpiryChanged: ({ organization_id }) => organization_id,
  ApiKeyIssued: ({ organization_id }) => organization_id,
  ApiKeyOriginsChanged: ({ organization_id }) => organization_id,
  ApiKeyRenamed: ({ organization_id }) => organization_id,
  ApiKeyRevoked: ({ organization_id }) => organization_id,
  ApiKeyRotated: ({ organization_id }) => organization_id,
  ApiKeyScopesChanged: ({ organization_id }) => organization_id,
  OrganizationCapabilityDisabled: ({ organization_id }) => organization_id,
  OrganizationCapabilityEnabled: ({ organization_id }) => organization_id,
  OrganizationCreated: ({ organization_id }) => organization_id,
  OrganizationDeleted: ({ organization_id }) => organization_id,
  OrganizationLimitsChanged: ({ organization_id }) => organization_id,
  OrganizationReactivated: ({ organization_id }) => organization_id,
  OrganizationRenamed: ({ organization_id }) => organization_id,
  OrganizationSuspended: ({ organization_id }) => organization_id,
  ViewDeleted: ({ organization_id }) => organization_id,
  ViewSaved: ({ organization_id }) => organization_id,
  AgentDirectoryAdded: ({ organization_id }) => organization_id,
  AgentDirectoryRemoved: ({ organization_id }) => organization_id,
  OrganizationDataExpired: ({ organization_id }) => organization_id,
  OrganizationDataPolicyChanged: ({ organization_id }) => organization_id,
  ScoringModelChanged: ({ organization_id }) => organization_id ?? 'everybody',
  ClientUserAttached: ({ session_id }) => session_id,
  ClientUserCleared: ({ session_id }) => session_id,
  SessionMarked: ({ session_id }) => session_id,
  SessionScored: ({ session_id }) => session_id,
  SessionUnmarked: ({ session_id }) => session_id,
  VisitorMerged: ({ session_id }) => session_id,
  VisitorSplit: ({ session_id }) => session_id,
  VisitorLinked: ({ session_id }) => session_id,
  WebhookDeliveryAttempted: ({ event_id }) => event_id,
  WebhookDeliverySkipped: ({ event_id }) => event_id,
  WebhookEndpointCreated: ({ organization_id }) => organization_id,
  WebhookEndpointDisabled: ({ organization_id }) => organization_id,
  WebhookEndpointEnabled: ({ organization_id }) => organization_id,
  WebhookEndpointFlagged: ({ organization_id }) => organization_id,
  WebhookEndpointMoved: ({ organization_id }) => organization_id,
  WebhookEndpointRecovered: ({ organization_id }) => organization_id,
  WebhookEndpointRenamed: ({ organization_id }) => organization_id,
  WebhookEndpointSecretRotated: ({ organization_id }) => organization_id,
  WebhookEndpointSubscriptionsChanged: ({ organization_id }) => organization_id,
  WebhookEventRaised: ({ event_id }) => event_id,
  WebhookRedeliveryRequested: ({ event_id }) => event_id,
}

/** Functions that return the session or Gate session whose data key encrypts an event. */
export const dataKeySubjects = {
  AgentLookedUp: ({ session_id }) => session_id,
  BatchReceived: ({ session_id }) => session_id,
  DocumentOpened: ({ session_id }) => session_id,
  NetworkChecked: () => null,
  ResultRequested: ({ session_id }) => session_id,
  SessionIdled: ({ session_id }) => session_id,
  SessionOpened: ({ session_id }) => session_id,
  VisitorCorrected: () => null,
  VisitorErased: () => null,
  AgentTokenRenewed: ({ gate_session_id }) => gate_session_id,
  AgentTokenRevoked: ({ gate_session_id }) => gate_session_id,
  GateDeliveryAcknowledged: ({ gate_session_id }) => gate_session_id,
  GateDeliveryExpired: ({ gate_session_id }) => gate_session_id,
  GateServiceChanged: () => null,
  GateServiceDisabled: () => null,
  GateServiceDomainVerified: () => null,
  GateServiceRegistered: () => null,
  GateServiceVerificationWithdrawn: () => null,
  GateServiceVerified: () => null,
  GateSessionApprovalStarted: ({ gate_session_id }) => gate_session_id,
  GateSessionApproved: ({ gate_session_id }) => gate_session_id,
  GateSessionClaimed: ({ gate_session_id }) => gate_session_id,
  GateSessionClaimFailed: ({ gate_session_id }) => gate_session_id,
  GateSessionClaimRequested: ({ gate_session_id }) => gate_session_id,
  GateSessionExpired: ({ gate_session_id }) => gate_session_id,
  GateSessionOpened: ({ gate_session_id }) => gate_session_id,
  GateSessionRejected: ({ gate_session_id }) => gate_session_id,
  GateVariablesAccepted: ({ gate_session_id }) => gate_session_id,
  LoginCodeConsumed: ({ gate_session_id }) => gate_session_id,
  LoginCodeExpired: ({ gate_session_id }) => gate_session_id,
  LoginSessionApproved: ({ gate_session_id }) => gate_session_id,
  LoginSessionOpened: ({ gate_session_id }) => gate_session_id,
  EngineAnswersLearned: () => null,
  RecordSkipped: () => null,
  AlertDeleted: () => null,
  AlertSaved: () => null,
  ApiKeyExpiryChanged: () => null,
  ApiKeyIssued: () => null,
  ApiKeyOriginsChanged: () => null,
  ApiKeyRenamed: () => null,
  ApiKeyRevoked: () => null,
  ApiKeyRotated: () => null,
  ApiKeyScopesChanged: () => null,
  OrganizationCapabilityDisabled: () => null,
  OrganizationCapabilityEnabled: () => null,
  OrganizationCreated: () => null,
  OrganizationDeleted: () => null,
  OrganizationLimitsChanged: () => null,
  OrganizationReactivated: () => null,
  OrganizationRenamed: () => null,
  OrganizationSuspended: () => null,
  ViewDeleted: () => null,
  ViewSaved: () => null,
  AgentDirectoryAdded: () => null,
  AgentDirectoryRemoved: () => null,
  OrganizationDataExpired: () => null,
  OrganizationDataPolicyChanged: () => null,
  ScoringModelChanged: () => null,
  ClientUserAttached: ({ session_id }) => session_id,
  ClientUserCleared: ({ session_id }) => session_id,
  SessionMarked: ({ session_id }) => session_id,
  SessionScored: ({ session_id }) => session_id,
  SessionUnmarked: ({ session_id }) => session_id,
  VisitorMerged: ({ session_id }) => session_id,
  VisitorSplit: ({ session_id }) => session_id,
  VisitorLinked: ({ session_id }) => session_id,
  WebhookDeliveryAttempted: ({ session_subject_id }) => session_subject_id,
  WebhookDeliverySkipped: () => null,
  WebhookEndpointCreated: () => null,
  WebhookEndpointDisabled: () => null,
  WebhookEndpointEnabled: () => null,
  WebhookEndpointFlagged: () => null,
  WebhookEndpointMoved: () => null,
  WebhookEndpointRecovered: () => null,
  WebhookEndpointRenamed: () => null,
  WebhookEndpointSecretRotated: () => null,
  WebhookEndpointSubscriptionsChanged: () => null,
  WebhookEventRaised: ({ subject_type, subject_id }: Pick<WebhookEventRaised, 'subject_type' | 'subject_id'>) => (subject_type === 'session' || subject_type === 'gate_session' ? subject_id : null),
  WebhookRedeliveryRequested: () => null,
} satisfies { readonly [E in keyof EventTypes]: (data: EventTypes[E]) => string | null }
