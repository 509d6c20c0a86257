import type { Expected } from './expected-differences.ts'

const told = 'session\\.(fingerprint\\.calculated|result\\.persisted)'
const ofSessions = `webhook POST ${told}`
const ofApprovals = 'webhook POST gate\\.session\\.approved'
const ofAll = `(${ofSessions}|${ofApprovals})`

/** Those of deliveries: the section `webhooks`, and what is in their bodies. */
export const expectedWebhookDifferences: Expected[] = [
  {
    reason: 'Tests are sent too.',
    lines: /^webhook POST webhook\.test: added$/,
    count: 1,
  },
  {
    reason: 'Each delivery has an Idempotency-Key and the signature of Standard Webhooks too.',
    lines: new RegExp(
      `^${ofAll} header (Idempotency-Key|webhook-(id|timestamp|signature)): added$`,
    ),
    count: 12,
  },
  {
    reason: 'How the published headers are written is described.',
    lines: new RegExp(
      `^${ofAll} header X-Foil-(Signature|Timestamp) pattern: .* here, none published$`,
    ),
    count: 6,
  },
  {
    reason: 'Answers are told apart by what they lead to, not by why a receiver gives them.',
    lines: new RegExp(`^${ofSessions} ((200|400|401|500): not here|(2XX|410|429|default): added)$`),
    count: 16,
  },
  {
    reason: 'Answers to an approval are told apart by whether the signup goes on.',
    lines: new RegExp(
      `^${ofApprovals} ((200 application/json|400|401|500): not here|(2XX application/json|3XX|4XX|408|425|default): added)$`,
    ),
    count: 10,
  },
  {
    reason: 'Ids in an approval have their form; a score is between 0 and 1.',
    lines:
      /^GateApprovedWebhookPayload > (gate_(session|account)_id pattern|foil\.score (minimum|maximum)): .* here, none published$/,
    count: 4,
  },
  {
    reason: 'Keys, envelopes and the names of services have bounds.',
    lines:
      /^Gate(Delivery(Request|Envelope)|ApprovedWebhookPayload) > (?!gate_|foil)\S+ (minLength|maxLength|pattern): .* here, none published$/,
    count: 24,
  },
  {
    reason: 'A constant is a number.',
    lines:
      /^GateDelivery(Request|Envelope) > version type: \["number"\] here, \["integer"\] published$/,
    count: 2,
  },
  {
    reason: 'Events have ids of the form evt_, as the specification says, in deliveries too.',
    lines:
      /^(WebhookEventEnvelope|(Session(FingerprintCalculated|ResultPersisted)|GateSessionApproved)WebhookEvent) > id pattern: "\^evt_.*" here, "\^wevt_/,
    count: 4,
  },
  {
    reason: 'The data of an event is one of the payloads.',
    lines:
      /^Event > data( other members: none here, true published|\|(Session(FingerprintCalculated|ResultPersisted)Payload|GateApprovedWebhookPayload|WebhookTestEventPayload): added)$/,
    count: 5,
  },
  {
    reason:
      'A result says which bot or agent it was, where the published payload lets members be added.',
    lines: /^SessionResultPersistedPayload > attribution\.agent: added$/,
    count: 1,
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
