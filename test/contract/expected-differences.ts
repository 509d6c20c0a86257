/** Differences that are meant, with what they come from. */
interface Expected {
  reason: string
  /** Matches each of its differences, and no other. */
  lines: RegExp
  /** Exact number of differences. */
  count: number
}

export const expectedDifferences: Expected[] = [
  {
    reason:
      'Endpoints that the published description lacks: those of collect, operators, people and the consent page.',
    lines: /^[A-Z]+ \S+: added$/,
    count: 50,
  },
  {
    reason:
      'The statuses of all refusals are described, and an unchanged registry is not sent again.',
    lines: /^[A-Z]+ \S+ \d{3}( application\/json)?: added$/,
    count: 239,
  },
  {
    reason: 'Answers and payloads have more members, some of them when asked.',
    lines: /^(?!SessionRuntimeIntegrity|AgentTokenVerification)\w+ > \S+: added$/,
    count: 62,
  },
  {
    reason: 'Webhook endpoints can filter session events.',
    lines: /webhooks\/endpoints\S* body application\/json > filter: added$/,
    count: 2,
  },
  {
    reason: 'API keys can expire.',
    lines: /api-keys\S* body application\/json > expires_at: added$/,
    count: 2,
  },
  {
    reason: 'Webhooks warn of API keys that expire soon, of failing endpoints, and of alerts.',
    lines:
      / enum: \[.*"key\.expiring",|^webhook POST (key\.expiring|endpoint\.failing|alert\.\w+): added$/,
    count: 11,
  },
  {
    reason: 'What is sent and shown has bounds: names, URLs, ids, lists, keys and scores.',
    lines:
      /^(?!GET \/v1\/sessions query).*(?<!slug) (min|max)(imum|Length|Items|Properties): \S+ here, none published$|pattern: \S+ here, none published$/,
    count: 126,
  },
  {
    reason: 'What always has a value here is never null.',
    lines: / null: false here, true published$/,
    count: 12,
  },
  {
    reason: 'Bodies and answers have the members that are listed; others are refused.',
    lines: / other members: false here, true published$/,
    count: 48,
  },
  {
    reason: 'What every answer and delivery has is required.',
    lines: / required: true here, false published$/,
    count: 14,
  },
  {
    reason:
      'Sessions are filtered by much more than their verdict and sorted, each parameter may come several times, and a page says how far it read.',
    lines:
      /^GET \/v1\/sessions (query (?!limit|cursor|search|include)|200 application\/json > meta\.read_)/,
    count: 49,
  },
  {
    reason: 'A list or a detail has more members, when asked.',
    lines: /^GET \S+ query include: added$/,
    count: 4,
  },
  {
    reason: 'POSTs that create, or do something once, take an Idempotency-Key.',
    lines: /^POST \S+ header Idempotency-Key: added$/,
    count: 11,
  },
  {
    reason:
      'Events have ids of the form evt_, and ids of sessions of the earlier form are taken, as the specification says.',
    lines:
      / pattern: "\^evt_.*" here, "\^wevt_| path sessionId pattern: "\^sid_.*\|\^\[0-9a-fA-F\]\{32\}\$" here/,
    count: 10,
  },
  {
    reason:
      'A slug has lower-case letters, digits and hyphens, in any order, as the specification says.',
    lines: / > slug (minLength|maxLength|pattern): /,
    count: 4,
  },
  {
    reason: 'An origin with a wildcard, and an address as the client sent it, need not be a URI.',
    lines: /(allowed_origins\[\]|request\.url) format: none here, "uri" published$/,
    count: 6,
  },
  {
    reason: 'Keys have a client target, which is named when they are made.',
    lines: /^POST \S+ body application\/json > client_target: added$/,
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
    reason: 'The nine names of runtime integrity are those of the specification.',
    lines:
      /^SessionRuntimeIntegrity > ((tampering|developer_tools|emulation|virtualization|privacy_hardening|identity_spoofing|replay): not here|([a-z]+_)+(detected|suspected|identity): added)$/,
    count: 15,
  },
  {
    reason: 'Visitors do not expire: expires_at is always the same.',
    lines: /^VisitorFingerprint(Summary|Detail) > lifecycle\.expires_at (enum|format): /,
    count: 4,
  },
  {
    reason: 'Values that the published description leaves open are listed.',
    lines:
      /^(SessionWebBotAuth > status|SessionResultPersistedPayload > event\.phase) enum: \[.*\] here, none published$/,
    count: 2,
  },
  {
    reason: 'What was stored was checked when it came.',
    lines: /^Organization > name minLength: none here, 1 published$/,
    count: 1,
  },
  {
    reason: 'A constant is a number.',
    lines: /version type: \["number"\] here, \["integer"\] published$/,
    count: 3,
  },
  {
    reason: 'A service cannot say that it is verified, and null takes its URL away.',
    lines:
      /^(POST|PATCH) \/v1\/gate\/services\S* body application\/json > (branding\.verified: not here|docs_url null: true here, false published)$/,
    count: 3,
  },
  {
    reason: 'An agent says that it can be told a code; a service may demand that, and a verdict.',
    lines:
      /^(POST|PATCH) \/v1\/gate\/se(ssions|rvices)\S* body application\/json > (claim|claim_required|minimum_verdict): added$/,
    count: 5,
  },
  {
    reason: 'A token that is not the right one is 401; nothing else is forbidden.',
    lines: /^\S+ \/v1\/gate\/\S+ 403 application\/json: not here$/,
    count: 2,
  },
  {
    reason:
      'A token that is not valid is told by `valid` alone; a valid one always has all members.',
    lines:
      /^AgentTokenVerification (> (created_at|expires_at|gate_account_id|status|valid): not here|> \|[01]: added|other members: none here, true published)$/,
    count: 8,
  },
  {
    reason: 'Tests are sent too.',
    lines: /^webhook POST webhook\.test: added$/,
    count: 1,
  },
  {
    reason: 'Each delivery has an Idempotency-Key and the signature of Standard Webhooks too.',
    lines: /^webhook POST \S+ header (Idempotency-Key|webhook-(id|timestamp|signature)): added$/,
    count: 12,
  },
  {
    reason:
      'Answers of receivers are told apart by what they lead to, not by why a receiver gives them.',
    lines: /^webhook POST \S+ (\S+|\S+ application\/json): (not here|added)$/,
    count: 26,
  },
  {
    reason: 'The data of an event is one of the payloads.',
    lines: /^Event > data other members: none here, true published$/,
    count: 1,
  },
]
