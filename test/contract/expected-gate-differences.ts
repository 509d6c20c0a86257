import type { Expected } from './expected-differences.ts'

const gate = '[A-Z]+ /v1/gate/\\S+'

/** Those of Gate. */
export const expectedGateDifferences: Expected[] = [
  {
    reason: 'What the consent page asks is not in the published description.',
    lines: /^(GET|POST) \/v1\/gate\/sessions\/\{gateSessionId\}\/(consent|approve|cancel): added$/,
    count: 3,
  },
  {
    reason:
      'Bodies and answers of Gate have the members that are listed, and approvals too; others are refused.',
    lines: new RegExp(
      `^(${gate} (body|\\d+)|Gate\\w+)( .*)? other members: false here, true published$`,
    ),
    count: 46,
  },
  {
    reason: 'What a service can say about itself has bounds.',
    lines:
      /^((POST|PATCH) \/v1\/gate\/services\S* body application\/json(?! > name )|GateManagedService|GateRegistryEntry|GateEnvVar|GateSdkInstall|GateBranding|GateConsentConfig) > \S+ (minLength|maxLength|maxItems|pattern): \S+ here, none published$/,
    count: 59,
  },
  {
    reason:
      'An update names something, and null takes a URL away; a service cannot say that it is verified.',
    lines:
      /^(POST|PATCH) \/v1\/gate\/services\S* body application\/json (minProperties: 1 here, none published|> docs_url null: true here, false published|> branding\.verified: not here)$/,
    count: 4,
  },
  {
    reason: 'Lists are whole and take no offset; deletions no body.',
    lines: /^(GET|DELETE) \/v1\/gate\/(registry|services)\S* 422 application\/json: added$/,
    count: 5,
  },
  {
    reason:
      'A repetition that comes too early or a disabled service is a conflict; an Idempotency-Key may be invalid.',
    lines:
      /^(POST|PATCH) \/v1\/gate\/(services\/\S+|login-sessions|login-sessions\/consume|sessions|sessions\/\S+\/ack) (409|422) application\/json: added$/,
    count: 6,
  },
  {
    reason: 'A token that is not the right one is 401; nothing else is forbidden.',
    lines:
      /^(GET \/v1\/gate\/sessions\/\{gateSessionId\}|POST \/v1\/gate\/login-sessions) 403 application\/json: not here$/,
    count: 2,
  },
  {
    reason:
      'Ids of sessions have their form; delivery keys and metadata have bounds where they are sent.',
    lines:
      /^(GateSession\w+ > (id|gate_session_id) pattern|(GET|POST) \S+ path gateSessionId pattern|POST \/v1\/gate\/sessions body application\/json > (delivery\.(key_id|public_key) (minLength|maxLength|pattern)|metadata maxProperties)): .* here, none published$/,
    count: 12,
  },
  {
    reason: 'A constant in a body is a number.',
    lines:
      /^POST \/v1\/gate\/sessions body application\/json > delivery\.version type: \["number"\] here/,
    count: 1,
  },
  {
    reason: 'An unchanged registry is not sent again.',
    lines: /^GET \/v1\/gate\/registry 304: added$/,
    count: 1,
  },
  {
    reason: 'Who shows a consent URL shows the code that its page has, too.',
    lines: /^Gate(SessionCreate|LoginSession) > confirmation_code: added$/,
    count: 2,
  },
  {
    reason:
      'An agent says that it can be told a code and tells it; a service may demand that, and a verdict.',
    lines:
      /^((POST|PATCH) \/v1\/gate\/services\S* body application\/json > (claim_required|minimum_verdict)|POST \/v1\/gate\/sessions body application\/json > claim|POST \/v1\/gate\/sessions\/\{gateSessionId\}\/claim|Gate(ManagedService|RegistryEntry) > (claim_required|minimum_verdict)|GateSessionPollData > claim): added$/,
    count: 11,
  },
  {
    reason: 'Who asked and who approved can be erased.',
    lines:
      /^(POST \/v1\/gate\/sessions\/\{gateSessionId\}\/erase|DELETE \/v1\/organizations\/\{organizationId\}\/gate-accounts\/\{gateAccountId\}): added$/,
    count: 2,
  },
  {
    reason: 'A poll says more of how a signup stands, and which variables the person let in.',
    lines: /^GateSessionPollData > (accepted_env_vars|approval|problem|reason): added$/,
    count: 4,
  },
  {
    reason: 'A service may verify its domain, whose name its variables then have.',
    lines:
      /^((GET|POST) \/v1\/gate\/services\/\{serviceId\}\/domain(\/verify)?|Gate(ManagedService|RegistryEntry) > (env_prefix|verified_domain)): added$/,
    count: 6,
  },
  {
    reason:
      'A token that is not valid is told by `valid` alone; a valid one always has all members.',
    lines:
      /^AgentTokenVerification (> (created_at|expires_at|gate_account_id|status|valid): not here|> \|[01]: added|other members: none here, true published)$/,
    count: 8,
  },
]
