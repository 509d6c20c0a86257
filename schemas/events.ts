// Generated from the .avsc files by `npm run schemas`. Times are epoch milliseconds.

export type ActorType = 'key' | 'operator' | 'person' | 'agent' | 'service' | 'scheduler' | 'other'

/** Who caused an event. */
export interface Actor {
  type: ActorType
  /** Of a key its id, of an operator the command; docs/internals/glossary.md has the others. */
  id: string
}

export interface Cause {
  actor: Actor
  request_id: null | string
}

export type Environment = 'live' | 'test'

/** What a session's decisions lacked of an agent was fetched: the keys of its directory, or the host name of its address. */
export interface AgentLookedUp {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  /** The evt_ id that the decision must carry. */
  decision_id: string
  looked_up_at: number
}

/** An encrypted observation batch was accepted; the payload is as decrypted, still deflated. */
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
  /** Where the agent's keys are. */
  directory: string
  /** Thumbprint of the key. */
  key_id: string
  /** What may have been signed: one for each address of the installation. */
  bases: string[]
  /** The signature, base64. */
  bytes: string
  /** SHA-256 of key and nonce, hex. */
  nonce_hash: string
  /** SHA-256 of the request's body, hex. */
  request_hash: string
}

/** What the request's signature is before its key is known. */
export interface DocumentSignature {
  /** signed: as it should be, as far as one can tell without its key. */
  status: DocumentSignatureStatus
  /** Why it is invalid, or why its key cannot be known. */
  reason: null | string
  signed: null | SignedRequest
}

/** A page lifecycle began in a session. */
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
  /** Host that the Signature-Agent header names (Web Bot Auth). */
  signature_agent: null | string
  challenge: string
  timing_nonce: string
  canvas_seed: string
  /** JA4 of the TLS handshake of the request that opened it, where an edge that is trusted named one. */
  ja4: null | string
  /** How its HTTP/2 connection began, in Akamai's form, likewise. */
  http2_fingerprint: null | string
  /** Null where the request has no header of Web Bot Auth. */
  signature: null | DocumentSignature
  /** Of a document of an app, whose attestation is bound to it. */
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

/** The client asked for a hand-off; answered by a final SessionScored whose event_id derives from this event_id. */
export interface ResultRequested {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  /** The evt_ id that the decision must carry. */
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

/** No batch arrived for 30 to 40 minutes, or the session reached its 24 hours; scoring makes its decision final. */
export interface SessionIdled {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  /** The evt_ id that the decision must carry. */
  decision_id: string
  idled_at: number
  reason: IdleReason
}

export type Platform = 'web' | 'ios' | 'android'

/** A client opened a session; its first DocumentOpened follows in the same append. */
export interface SessionOpened {
  session_id: string
  organization_id: string
  environment: Environment
  opened_at: number
  /** The publishable key that opened it. */
  key_id: string
  platform: Platform
  sdk_name: string
  sdk_version: string
  /** Continuity ids that the client presented (cookie, storage), strongest first. */
  continuity_ids: string[]
  /** The id that this session hands out for the next visit. */
  continuity_id: string
}

export type CorrectionKind = 'split' | 'merge' | 'other'

/** Somebody said that sessions of one visitor are of another. What becomes of each session is in tidegate.sessions.v1. */
export interface VisitorCorrected {
  organization_id: string
  environment: Environment
  kind: CorrectionKind
  /** split: who loses sessions. merge: who gets them. */
  visitor_id: string
  /** split: the new visitor. merge: the one that is no more. */
  other_visitor_id: string
  /** The sessions that are of another visitor from then on. */
  session_ids: string[]
  reason: string
  corrected_at: number
}

/** Sessions of a person were erased: their data keys, and all rows and states made of them. It has nothing of what was erased. */
export interface VisitorErased {
  event_id: string
  organization_id: string
  environment: Environment
  /** Of all events of one erasure; each has some of the sessions. */
  erasure_id: string
  /** Whose erasure was asked for; null where it was a user's. */
  visitor_id: null | string
  /** HMAC of the client user id, hex; null where it was a visitor's. */
  user_digest: null | string
  session_ids: string[]
  erased_visitor_ids: string[]
  /** Visitors of whom other sessions are left; of those before, none is. */
  changed_visitor_ids: string[]
  counts: Record<string, number>
  erased_at: number
}

/** A token that is in use is good for longer. */
export interface AgentTokenRenewed {
  /** Of the signup that issued it. */
  gate_session_id: string
  gate_account_id: string
  expires_at: number
  renewed_at: number
}

/** A token works no more. */
export interface AgentTokenRevoked {
  /** Of the signup that issued it. */
  gate_session_id: string
  gate_account_id: string
  revoked_at: number
}

/** The credentials have arrived; they are not delivered again. */
export interface GateDeliveryAcknowledged {
  gate_session_id: string
  /** Of the request that acknowledged it; a repetition of that request has the same. */
  acknowledgement_id: string
  acknowledged_at: number
}

/** Nobody acknowledged the credentials in time; they are not delivered any more. */
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

/** What an organization says about its service. */
export interface GateServiceDefinition {
  name: string
  description: string
  website: string
  discoverable: boolean
  /** we_..., told of approvals; null only of the built-in service. */
  webhook_endpoint_id: null | string
  /** null = no dashboard login, and no agent tokens. */
  dashboard_login_url: null | string
  docs_url: null | string
  env_vars: GateEnvVar[]
  sdks: GateSdk[]
  branding: GateBranding
  consent: GateConsentLinks
  /** Whether every approval is claimed with the code that the consent page shows. */
  claim_required: boolean
  /** human: nobody else approves; null = inconclusive, too. */
  minimum_verdict: null | string
}

/** A service is described anew, as a whole. */
export interface GateServiceChanged {
  service_id: string
  organization_id: string
  environment: Environment
  definition: GateServiceDefinition
  changed_at: number
}

/** A service takes no signups and logins any more. Its id stays taken. */
export interface GateServiceDisabled {
  service_id: string
  organization_id: string
  environment: Environment
  disabled_at: number
}

/** The service has shown that it holds the registrable domain of its website; ends with another website. */
export interface GateServiceDomainVerified {
  service_id: string
  organization_id: string
  environment: Environment
  /** acme.dev of https://www.acme.dev/mail. */
  domain: string
  /** Where the challenge was found: dns or file. */
  proof: string
  verified_at: number
}

/** An organization registered a service, active from the start. */
export interface GateServiceRegistered {
  service_id: string
  organization_id: string
  environment: Environment
  definition: GateServiceDefinition
  registered_at: number
}

/** The operator does not vouch for a service any more. */
export interface GateServiceVerificationWithdrawn {
  service_id: string
  organization_id: string
  environment: Environment
  withdrawn_at: number
}

/** The operator vouches for who is behind a service, by its name, website and logo as they are. */
export interface GateServiceVerified {
  service_id: string
  organization_id: string
  environment: Environment
  verified_at: number
}

/** A person approved the signup; the service is asked for the account. The session stays pending until it has answered. */
export interface GateSessionApprovalStarted {
  gate_session_id: string
  gate_account_id: string
  /** we_... that is asked; null = the built-in service. */
  webhook_endpoint_id: null | string
  approve_token_hash: string
  /** Of the session that approved: human or inconclusive. */
  verdict: string
  risk_score: number
  /** sid_... of the consent page. */
  proof_session_id: string
  /** evt_... of its decision. */
  proof_decision_id: string
  started_at: number
}

/** The account exists and what is delivered is ready. Says in one event all that an approval makes, so that none of it exists without the rest. */
export interface GateSessionApproved {
  gate_session_id: string
  gate_account_id: string
  /** Both envelopes under a data key that is kept in the vault only, until the delivery has ended. */
  delivery_sealed: Buffer
  delivery_expires_at: number
  ack_token_hash: string
  /** HMAC of the agt_ token; null = the service has no dashboard login. */
  agent_token_hash: null | string
  agent_token_expires_at: null | number
  approved_at: number
}

/** The agent told the right code; the service is asked for the account. */
export interface GateSessionClaimed {
  gate_session_id: string
  gate_account_id: string
  /** we_... that is asked; null = the built-in service. */
  webhook_endpoint_id: null | string
  claimed_at: number
}

/** The agent told a wrong code. */
export interface GateSessionClaimFailed {
  gate_session_id: string
  gate_account_id: string
  failed_at: number
}

/** A person approved the signup; the service is asked once the agent has told the code that the consent page shows. The session stays pending. */
export interface GateSessionClaimRequested {
  gate_session_id: string
  gate_account_id: string
  approve_token_hash: string
  claim_code_hash: string
  /** Of the session that approved: human or inconclusive. */
  verdict: string
  risk_score: number
  /** sid_... of the consent page. */
  proof_session_id: string
  /** evt_... of its decision. */
  proof_decision_id: string
  requested_at: number
}

/** Nobody decided within the session's time. */
export interface GateSessionExpired {
  gate_session_id: string
  expired_at: number
}

/** Somebody asked for a signup, which waits for a person's consent. */
export interface GateSessionOpened {
  /** gate_...; whoever knows it may see the consent page. */
  gate_session_id: string
  service_id: string
  /** Whose service it is; null = the built-in one. */
  organization_id: null | string
  environment: Environment
  account_name: string
  /** JSON object, as sent. */
  metadata: null | string
  delivery_key_id: string
  /** base64url raw X25519; what is delivered is sealed to it. */
  delivery_public_key: string
  /** HMAC of the gtpoll_ token. */
  poll_token_hash: string
  /** Where the request came from; shown to the person who decides. */
  requested_ip: null | string
  requested_user_agent: null | string
  opened_at: number
  expires_at: number
  /** Shown where it was asked for and on the consent page. */
  confirmation_code: string
  /** supported: the agent can be told the code that the consent page shows; null = it did not say so. */
  claim: null | string
}

export type GateRejection = 'declined' | 'closed' | 'integrator_failed' | 'claim_failed'

/** A signup or login that was pending ended without an approval. */
export interface GateSessionRejected {
  gate_session_id: string
  /** declined: by the person; closed: the consent page was closed; integrator_failed: the service did not answer an approval as it must; claim_failed: five wrong codes were told. */
  reason: GateRejection
  /** What was wrong with the service's answers, in words; never quotes them. */
  problem: null | string
  rejected_at: number
}

/** Which variables the person who approved a signup lets into the agent's env file. Others go to a file of their own. */
export interface GateVariablesAccepted {
  gate_session_id: string
  gate_account_id: string
  /** Names, such as ACME_API_KEY. */
  env_vars: string[]
  accepted_at: number
}

/** The service exchanged the code for the account. */
export interface LoginCodeConsumed {
  gate_session_id: string
  /** Of the request that used it; a repetition of that request has the same. */
  consumption_id: string
  consumed_at: number
}

/** Nobody used the code in time. */
export interface LoginCodeExpired {
  gate_session_id: string
  expired_at: number
}

/** A person approved a dashboard login; its code may be used once. */
export interface LoginSessionApproved {
  gate_session_id: string
  /** HMAC of the one-time code. */
  code_hash: string
  code_expires_at: number
  approve_token_hash: string
  /** Of the session that approved: human or inconclusive. */
  verdict: string
  risk_score: number
  /** sid_... of the consent page. */
  proof_session_id: string
  /** evt_... of its decision. */
  proof_decision_id: string
  approved_at: number
}

/** The holder of an agent token asked for a dashboard login, which waits for a person's consent. */
export interface LoginSessionOpened {
  /** gate_... */
  gate_session_id: string
  service_id: string
  /** Whose service it is; null = the built-in one. */
  organization_id: null | string
  environment: Environment
  gate_account_id: string
  account_name: string
  /** Where the request came from; shown to the person who decides. */
  requested_ip: null | string
  requested_user_agent: null | string
  opened_at: number
  expires_at: number
  /** Shown where it was asked for and on the consent page. */
  confirmation_code: string
  /** Where the browser goes once it is approved, as the consent page shows it. */
  dashboard_login_url: string
}

/** A trusted browser answered the deployment's questions. What it answered counts as right. */
export interface EngineAnswersLearned {
  /** blink, gecko or webkit. */
  engine_family: string
  /** The browser's user agent. */
  browser: string
  /** Hashes of the answers, by question. */
  answers: Record<string, string>
  /** Name of the operator who ran the command (as they say), or of the person in the console. */
  learned_by: string
  learned_at: number
  /** It counts for this organization alone; null where an operator's command taught it, for everybody. */
  organization_id: null | string
}

/** An operator decided that a record that cannot be read stops its partition no longer. It stays where it is, and here. */
export interface RecordSkipped {
  skipped_topic: string
  skipped_partition: number
  skipped_offset: number
  reason: string
  /** Who ran the command, as they say. */
  skipped_by: string
  skipped_at: number
  why_unreadable: string
  record_key: string
  record_headers: Record<string, string>
  record_value: Buffer
}

export type KeyType = 'publishable' | 'secret'

export type ClientTarget = 'browser' | 'native_ios' | 'native_android'

/** A key was issued. Nothing here lets anyone authenticate: the look-up value is peppered and the secret hash encrypted. */
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
  /** Encrypted SHA-256 of a secret key, needed to seal tokens to it. */
  secret_hash_sealed: null | Buffer
  key_preview: string
  /** The whole publishable key. */
  display_key: null | string
  /** The key that a rotation replaced. */
  replaces_key_id: null | string
  issued_at: number
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

export type RevocationReason = 'requested' | 'grace_ended'

export interface ApiKeyRevoked {
  organization_id: string
  key_id: string
  revoked_at: number
  reason: RevocationReason
}

/** The key was replaced and works until its grace ends. */
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

/** The organization may use what is off by default. */
export interface OrganizationCapabilityEnabled {
  organization_id: string
  /** A string, so that an older reader does not take a capability that it does not know for one that it does. */
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

/** Support gave the organization request limits of its own, or took them back. The event says all of them. */
export interface OrganizationLimitsChanged {
  organization_id: string
  /** Units in 60 seconds of the bucket of its secret keys; null = the server's default. */
  secret_limit: null | number
  /** The same for its publishable keys. */
  publishable_limit: null | number
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

/** The organization trusts a directory of agents' keys, or calls it otherwise than before. */
export interface AgentDirectoryAdded {
  organization_id: string
  /** Host of the directory, in lower case and punycode, with its port unless that is 443. */
  domain: string
  /** What the organization calls whoever signs; null = the domain. */
  name: null | string
  added_at: number
}

/** The organization does not trust a directory of agents' keys any more. */
export interface AgentDirectoryRemoved {
  organization_id: string
  domain: string
  removed_at: number
}

/** Data of an organization reached their age: sessions by their newest decision, decisions with them, visitors by when they were last seen, webhook events by their creation; null = nothing. Read models are without them from here on, and no later policy brings them back. */
export interface OrganizationDataExpired {
  organization_id: string
  sessions_before: null | number
  decisions_before: null | number
  visitors_before: null | number
  webhooks_before: null | number
  expired_at: number
}

/** What is recorded of an organization's visitors and for how many days was changed. The event says all of it. Shortened addresses are IPv4 /24 and IPv6 /48. */
export interface OrganizationDataPolicyChanged {
  organization_id: string
  /** Sessions stay for so many days; 0 = for ever, null = the operator's default. */
  session_days: null | number
  /** Decisions; at most as long as their sessions. */
  decision_days: null | number
  visitor_days: null | number
  webhook_days: null | number
  shortens_addresses: boolean
  allows_minimal_mode: boolean
  /** Columns of read.session_facts that analysts do not see; null = the default ones. */
  hidden_facts: null | string[]
  /** Whether the facts of its sessions are published on tidegate.facts.v1. */
  facts_topic: boolean
  changed_at: number
}

/** Decisions from a moment on are made by another scoring model. Of changes that are in effect the newest counts, so a later one may take the place of one that is still to come. */
export interface ScoringModelChanged {
  event_id: string
  /** null = of everybody who has no model of their own. */
  organization_id: null | string
  /** As it was called by the release that wrote it; null = the organization has none of its own any more. */
  model_id: null | string
  /** The model, JSON; null = the standard one of the release that scores. */
  document: null | string
  effective_at: number
  /** Of the operator. */
  reason: string
  changed_at: number
}

/** The customer linked its own user id to the session. */
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

/** The customer said what the session really was. One mark is of up to 1,000 sessions, each with an event of its own. */
export interface SessionMarked {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  mark_id: string
  label: MarkLabel
  /** A word of the customer's own, [a-z0-9_]{1,64}, so that it says nothing about a person. */
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

/** How the session was linked to a visitor, and what the visitor read model needs. */
export interface VisitorLink {
  id: string
  confidence: null | number
  identified_at: number
  method: ResolutionMethod
  basis: null | ResolutionBasis
  /** The continuity id that leads to this visitor from now on. */
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
  /** Whether the device vouched for the app. Null for pages. */
  attestation: null | boolean
}

export interface WithheldPart {
  group: string
  reason: string
}

export interface SessionEvidence {
  /** What was consulted. */
  sources: string[]
  /** Members at their harmless value because nothing was consulted for them. */
  unchecked: string[]
  /** Members that the SDK always sends and did not. */
  missing: string[]
  /** Parts of the snapshot that are not there, and why: blocked, unsupported, late. */
  withheld: WithheldPart[]
  /** Members whose values no browser has. */
  impossible: string[]
  /** Members that have what the app says of itself and its device, which nothing verifies. */
  claimed: string[]
}

export interface SignalFired {
  signal: string
  role: string
  category: string
  strength: string
  /** What was observed: signals of one channel do not confirm each other. */
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

/** What the document that handed off has shown. */
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

/** Counts over the windows that end with the decision, this session included. */
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

/** What a document answered, for others to learn from: nothing of it leads to the person, nor is a text of the client. */
export interface GivenAnswers {
  /** Hash of the engine and version that the browser claims. */
  engine: null | string
  /** Engine that the browser claims: blink, gecko or webkit. The deployment's own questions are learned by it. */
  engine_family: null | string
  /** Hash of the renderer, system, browser and version that the browser claims. */
  canvas_class: null | string
  canvas_seed: null | string
  /** Hash of the answer. */
  canvas_answer: null | string
  /** Hashes of the answers, by question. */
  engine_answers: Record<string, string>
  /** Hash of the second and third part of JA4, which engine_family is learned by; null where anything besides it spoke against the session. */
  handshake: null | string
  /** Under a key of the month that is deleted after it. */
  visitor_digest: string
  /** Of the network (/24 or /48), under the same key. */
  network_digest: string
  /** Whether nothing else spoke against the session: only then others learn of it. */
  is_consistent: boolean
}

export interface Sdk {
  name: string
  version: string
}

export type DecisionReason = 'first' | 'changed' | 'hand_off' | 'idle' | 'looked_up'

export type AgentStatus = 'none' | 'declared' | 'signed' | 'verified' | 'spoofed'

/** What was looked at. Null = it was not, or has no answer yet. */
export interface AgentEvidence {
  catalogue_id: null | string
  /** Host of the Signature-Agent header. */
  domain: null | string
  /** Thumbprint of the key that signed. */
  key_id: null | string
  /** Of the address, where it leads back to the address. */
  host_name: null | string
  /** The published ranges that were searched for the address. */
  list: null | string
  /** Why the signature does not count. */
  reason: null | string
  /** When the directory of keys, or the host name, was fetched. */
  fetched_at: null | number
}

/** Which bot or agent the session says that it is, and whether that is so. */
export interface SessionAgent {
  status: AgentStatus
  provider: null | string
  product: null | string
  purpose: null | string
  /** The check that decided: signature, reverse_dns or published_ranges. */
  method: null | string
  evidence: null | AgentEvidence
}

export type AttestationStatus = 'unverified' | 'valid' | 'invalid'

/** The app on one device, with this attestation counted. */
export interface AttestedDevice {
  id: string
  /** Of App Attest: SPKI, DER, base64. */
  public_key: null | string
  /** The last one of the key; 0 without any. */
  counter: number
  first_seen_at: number
  last_seen_at: number
  /** Sessions. */
  seen_count: number
}

/** What was found of the attestation that an app sent. */
export interface SessionAttestation {
  /** unverified: it could not be checked, as its app or its key is not known. */
  status: AttestationStatus
  /** app_attest, app_attest_assertion or play_integrity. */
  method: string
  /** Why it is not valid. */
  reason: null | string
  /** The app that was attested: of Apple with its team, of Google its package. */
  app_id: null | string
  /** Null unless it is valid. */
  device: null | AttestedDevice
}

/** One decision about a session, with everything that the session's detail shows, so that a reader needs no other topic. */
export interface SessionScored {
  /** The decision, evt_...; deterministic, so a retry repeats it. */
  event_id: string
  session_id: string
  organization_id: string
  environment: Environment
  /** When the session was opened. */
  created_at: number
  evaluated_at: number
  /** When the client was last heard of; a decision made because it fell silent is later. */
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
  /** Null for a decision that no hand-off asked for. */
  hand_off: null | HandOffEvidence
  /** SHA-256 of what the machine says of itself, hex. */
  snapshot_hash: null | string
  /** SHA-256 of the summary of input, hex; null with little input. */
  behavior_hash: null | string
  /** Null where nothing was counted. */
  repeats: null | Repeats
  /** In the first final decision about a page with a visitor and natural input, where it answered its document. */
  given_answers: null | GivenAnswers
  /** The publishable key that opened the session; null where its opening is not known. */
  key_id: null | string
  platform: null | Platform
  /** As the client names it; null where the session's opening is not known. */
  sdk: null | Sdk
  has_snapshot: boolean
  /** What asked for the decision: the first snapshot, observations that changed the verdict, a hand-off, the session's end, or what was looked up of its agent. */
  reason: DecisionReason
  /** Id of the scoring model that made the score of the signals. */
  model: string
  agent: SessionAgent
  /** Null where none was sent. */
  attestation: null | SessionAttestation
}

/** The customer took a mark away from a session. The mark before it counts again. */
export interface SessionUnmarked {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  mark_id: string
  unmarked_at: number
}

/** A session is of another visitor, since somebody said that both are one. */
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

/** A session that was taken for one of another visitor was given a visitor of its own. */
export interface VisitorSplit {
  session_id: string
  organization_id: string
  environment: Environment
  event_id: string
  visitor_id: string
  earlier_visitor_id: string
  /** continuity_returned: storage that was taken for lost came back. */
  cause: SplitCause
  /** 0 to 100, as in SessionScored. */
  confidence: number
  split_at: number
}

/** A session was found to be of a visitor, and by what scoring knows the visitor from then on. */
export interface VisitorLinked {
  session_id: string
  organization_id: string
  environment: Environment
  visitor_id: string
  linked_at: number
  /** What the client was given. */
  continuity_id: null | string
  /** What the client had of earlier sessions. */
  presented_continuity_ids: string[]
  install_id: null | string
  /** Six bytes of a hash for each component of the fingerprint's vector, zeros for an unknown one. Empty where nothing was observed. */
  components: Buffer
  /** Whether the components tell the device from others of its kind. */
  is_distinctive: boolean
  /** IPv4 /24 or IPv6 /48, where anything was observed. */
  network: null | string
}

export type WebhookAttemptOutcome = 'succeeded' | 'retrying' | 'failed'

/** One request of a delivery has ended. */
export interface WebhookDeliveryAttempted {
  event_id: string
  delivery_id: string
  organization_id: string
  environment: Environment
  endpoint_id: string
  /** 1 for the first of the delivery. */
  attempt: number
  /** When the request began. */
  attempted_at: number
  duration_ms: number
  /** retrying: another attempt follows; failed: none does. */
  outcome: WebhookAttemptOutcome
  response_status: null | number
  /** What the receiver answered, at most 4,096 bytes; null where nothing is kept. */
  response_body: null | string
  /** Why there was no success, in words. */
  error: null | string
  next_attempt_at: null | number
  /** The session that the webhook event is about; null for others. */
  session_subject_id: null | string
}

/** A delivery was given up without a request, as when its endpoint is disabled. */
export interface WebhookDeliverySkipped {
  event_id: string
  delivery_id: string
  organization_id: string
  environment: Environment
  endpoint_id: string
  reason: string
  skipped_at: number
}

/** An organization told where its events go. */
export interface WebhookEndpointCreated {
  organization_id: string
  endpoint_id: string
  /** Of the key that created it; it gets the events of this environment only. */
  environment: Environment
  name: string
  url: string
  /** What it is subscribed to; strings, so that an older reader takes no type for another. */
  event_types: string[]
  /** The signing secret, encrypted under a master key. */
  signing_secret_sealed: Buffer
  created_at: number
}

export type EndpointDisabledReason = 'manual' | 'failing' | 'gone'

/** Nothing is sent to the endpoint any more. */
export interface WebhookEndpointDisabled {
  organization_id: string
  endpoint_id: string
  /** manual: its owner did it; failing: no delivery succeeded for days; gone: it answered 410. */
  reason: EndpointDisabledReason
  disabled_at: number
}

/** A disabled endpoint gets events again. */
export interface WebhookEndpointEnabled {
  organization_id: string
  endpoint_id: string
  enabled_at: number
}

export type EndpointFlaggedReason = 'failing' | 'gone'

/** The endpoint would have been disabled, but an active service is told of approvals there. */
export interface WebhookEndpointFlagged {
  organization_id: string
  endpoint_id: string
  /** failing: no delivery succeeded for days; gone: it answered 410. */
  reason: EndpointFlaggedReason
  flagged_at: number
}

/** The endpoint has another URL. */
export interface WebhookEndpointMoved {
  organization_id: string
  endpoint_id: string
  url: string
  moved_at: number
}

/** A delivery to a flagged endpoint succeeded: it is not flagged any more. */
export interface WebhookEndpointRecovered {
  organization_id: string
  endpoint_id: string
  recovered_at: number
}

/** The endpoint has another name. */
export interface WebhookEndpointRenamed {
  organization_id: string
  endpoint_id: string
  name: string
  renamed_at: number
}

/** Deliveries are signed with a new secret; secrets before it sign too until they expire. */
export interface WebhookEndpointSecretRotated {
  organization_id: string
  endpoint_id: string
  signing_secret_sealed: Buffer
  rotated_at: number
  /** When the secret that was newest until now stops signing. */
  previous_expires_at: number
}

/** The event says all that the endpoint is subscribed to from now on. */
export interface WebhookEndpointSubscriptionsChanged {
  organization_id: string
  endpoint_id: string
  event_types: string[]
  changed_at: number
}

export type WebhookRoute = 'queued' | 'direct'

/** Something happened that webhook endpoints are told of, and the endpoints that are told. The first of an event id counts. */
export interface WebhookEventRaised {
  /** evt_...; follows from what it is about, so a retry repeats it. */
  event_id: string
  organization_id: string
  environment: Environment
  type: string
  subject_type: string
  subject_id: string
  /** JSON of the payload's `data`; every attempt sends these bytes. */
  data: string
  created_at: number
  /** One delivery each. */
  endpoint_ids: string[]
  /** direct: whoever raised it makes the calls and waits for their answers; the queue leaves it alone. */
  route: WebhookRoute
}

/** An operator wants a delivery that had ended to be made again, from the start of the schedule. */
export interface WebhookRedeliveryRequested {
  event_id: string
  delivery_id: string
  organization_id: string
  environment: Environment
  endpoint_id: string
  requested_at: number
}

/** Those whose records have a `Cause`, too. */
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

/** The session, or Gate session, whose data key encrypts what an event says about a person. */
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
