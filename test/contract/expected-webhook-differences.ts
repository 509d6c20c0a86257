import type { Expected } from './expected-differences.ts'

const told = 'session\\.(fingerprint\\.calculated|result\\.persisted)'
const ofSessions = `webhook POST ${told}`

/** Those of deliveries: the section `webhooks`, and what is in their bodies. */
export const expectedWebhookDifferences: Expected[] = [
  {
    reason: 'Gate is not offered yet, nor is its webhook gate.session.approved described.',
    lines:
      /^(webhook POST gate\.session\.approved|WebhookEventEnvelope > data\|GateApprovedWebhookPayload): not here$/,
    count: 2,
  },
  {
    reason: 'Tests are sent too.',
    lines: /^webhook POST webhook\.test: added$/,
    count: 1,
  },
  {
    reason: 'Each delivery has an Idempotency-Key and the signature of Standard Webhooks too.',
    lines: new RegExp(`^${ofSessions} header (Idempotency-Key|webhook-(id|timestamp|signature)): added$`),
    count: 8,
  },
  {
    reason: 'How the published headers are written is described.',
    lines: new RegExp(`^${ofSessions} header X-Foil-(Signature|Timestamp) pattern: .* here, none published$`),
    count: 4,
  },
  {
    reason: 'Answers are told apart by what they lead to, not by why a receiver gives them.',
    lines: new RegExp(`^${ofSessions} ((200|400|401|500): not here|(2XX|410|429|default): added)$`),
    count: 16,
  },
  {
    reason: 'Events have ids of the form evt_, as the specification says, in deliveries too.',
    lines:
      /^(WebhookEventEnvelope|Session(FingerprintCalculated|ResultPersisted)WebhookEvent) > id pattern: "\^evt_.*" here, "\^wevt_/,
    count: 3,
  },
  {
    reason: 'The data of an event is one of the payloads.',
    lines:
      /^Event > data( other members: none here, true published|\|(Session(FingerprintCalculated|ResultPersisted)Payload|WebhookTestEventPayload): added)$/,
    count: 4,
  },
  {
    reason: 'What every delivery has is required.',
    lines:
      /^(WebhookRequestSummary > [a-z_]+|SessionResultPersistedPayload > (attribution\.bot|signals\[\]\.[a-z]+)) required: true here, false published$/,
    count: 13,
  },
  {
    reason: 'What always has a value in a delivery is never null.',
    lines:
      /^(WebhookRequestSummary > (first_seen|risk_time)|SessionResultPersistedPayload > event\.(phase|is_provisional)) null: false here, true published$/,
    count: 4,
  },
  {
    reason:
      'The decision of a payload is written as elsewhere: its id, its phase, points by category, who the bot is.',
    lines:
      /^SessionResultPersistedPayload > (event\.(phase enum|scoring_event_id pattern)|score_breakdown\.categories\{\}|attribution\.bot(\.behaviors|\.labels| other members)): /,
    count: 6,
  },
]
