import { z } from 'zod'
import { list, meta, timestamp } from '../../../infra/http/schemas.ts'
import {
  agent,
  agentStatus,
  attribution,
  decisionEventId,
  markLabel,
  markReason,
  percent,
  phase,
  sessionId,
} from '../../../projections/sessions/decision-schemas.ts'
import { networkKinds } from '../../../projections/sessions/facts.ts'
import { withheldReasons } from '../../../schemas/observations.ts'
import { browser, clientTelemetry, device } from './client.ts'
import { decision, nullableText, resolution, visitorLink } from './fingerprints.ts'
import { identificationSchema } from './identification.ts'
import {
  deviceIdentity,
  nativeApp,
  nativeCarrier,
  nativeMotionPrint,
  nativeRuntimeIntegrity,
} from './native.ts'
import { connectionFingerprint, network } from './network.ts'
import { logPlaceSchema, scoreExplanationSchema } from './score.ts'

const clientUserId = z.string().nullable().meta({
  maxLength: 256,
  description: "The customer's own id of the end user; set with PATCH /v1/sessions/{sessionId}.",
})

const mark = z
  .strictObject({
    id: z.string(),
    label: markLabel,
    reason: markReason.nullable(),
    marked_at: timestamp,
  })
  .meta({ id: 'SessionMark', description: 'The newest of `POST /v1/marks`.' })

const facts = z
  .strictObject({
    signals: z.array(z.string()).describe('Those that fired.'),
    page_host: nullableText,
    page_path: nullableText,
    country: nullableText,
    asn: z.int().nullable(),
    network_holder: nullableText,
    network: z.enum(networkKinds).nullable(),
    browser: nullableText,
    browser_version: nullableText,
    os: nullableText,
    form_factor: nullableText,
    agent_status: agentStatus.nullable(),
    agent_provider: nullableText,
    agent_product: nullableText,
    handed_off_at: timestamp.nullable(),
  })
  .meta({
    id: 'SessionFacts',
    description: 'What sessions are filtered and counted by. Null once its decisions have ended.',
  })

export const sessionSummarySchema = z
  .strictObject({
    object: z.literal('session'),
    id: sessionId,
    created_at: timestamp,
    client_user_id: clientUserId,
    latest_decision: decision,
    visitor_fingerprint: visitorLink.nullable(),
    mark: mark.nullable(),
    facts: facts.nullable(),
  })
  .meta({ id: 'SessionSummary' })

export type SessionSummary = z.output<typeof sessionSummarySchema>

const detailDecision = z
  .strictObject({
    event_id: decisionEventId,
    automation_status: z.enum(['automated', 'human', 'uncertain']),
    risk_score: percent,
    evaluation_phase: phase,
    decision_status: z.enum(['preliminary', 'final']),
    evaluated_at: timestamp,
  })
  .meta({ id: 'SessionDetailDecision' })

const highlight = z
  .strictObject({
    key: z.string(),
    effect: z.enum(['increases_risk', 'reduces_risk', 'context']),
    importance: z.enum(['high', 'medium', 'low']),
    summary: z.string(),
    evidence: z.array(z.strictObject({ signal: z.string(), name: z.string() })).optional(),
  })
  .meta({ id: 'SessionHighlight' })

const integrityLevel = z.enum(['clean', 'notice', 'elevated', 'high_risk'])

const runtimeIntegrity = z
  .strictObject({
    tampering_detected: integrityLevel,
    developer_tools_detected: integrityLevel,
    emulation_suspected: integrityLevel,
    virtualization_suspected: integrityLevel,
    privacy_hardening_suspected: integrityLevel,
    identity_spoofing_suspected: integrityLevel,
    replay_suspected: integrityLevel,
    outdated_environment: integrityLevel,
    verified_bot_identity: integrityLevel,
  })
  .meta({ id: 'SessionRuntimeIntegrity' })

const webBotAuth = z
  .strictObject({
    status: z.enum(['verified', 'invalid', 'unknown_key', 'absent']),
    domain: nullableText.describe(
      'Host of the Signature-Agent header, with its port unless that is 443.',
    ),
  })
  .meta({ id: 'SessionWebBotAuth', description: 'Null when the request had no signature headers.' })

const detailVisitor = visitorLink
  .extend({
    resolution,
    lifecycle: z.strictObject({
      first_seen_at: timestamp.nullable(),
      last_seen_at: timestamp.nullable(),
      seen_count: z.int().min(0).nullable(),
    }),
  })
  .meta({ id: 'SessionDetailVisitorFingerprint' })

const evidence = z
  .strictObject({
    sources: z.array(z.string()).describe('What was consulted.'),
    unchecked: z
      .array(z.string())
      .describe(
        'Members that stand at their harmless value because nothing was consulted for them: names of runtime_integrity, and paths of other members.',
      ),
    missing: z.array(z.string()).describe('What the SDK always sends and did not.'),
    withheld: z
      .array(
        z.strictObject({
          group: z.string().describe('A part of the snapshot, as in `client_telemetry`.'),
          reason: z.enum(withheldReasons),
        }),
      )
      .describe('What is not there, and why, as such a browser may have it.'),
    impossible: z.array(z.string()).describe('What has a value that no browser has.'),
    claimed: z
      .array(z.string())
      .describe(
        'Members that have what the app says of itself and its device, which nothing verifies.',
      ),
  })
  .meta({ id: 'SessionEvidence' })

const windowCounts = z
  .strictObject({ five_minutes: z.int().min(0), hour: z.int().min(0), day: z.int().min(0) })
  .meta({ id: 'SessionRepeatCounts' })

const repeats = z
  .strictObject({
    address_sessions: windowCounts,
    network_sessions: windowCounts,
    visitor_sessions: windowCounts,
    snapshot_sessions: windowCounts,
    behavior_sessions: windowCounts,
    address_visitors: windowCounts,
    visitor_addresses: windowCounts,
    visitor_users: windowCounts,
    user_visitors: windowCounts,
  })
  .meta({ id: 'SessionRepeats' })

/** Most actionable first. */
export const sessionDetailSchema = z
  .strictObject({
    object: z.literal('session'),
    id: sessionId,
    created_at: timestamp,
    client_user_id: clientUserId,
    mark: mark.nullable(),
    decision: detailDecision,
    highlights: z.array(highlight).max(5),
    attribution: attribution.nullable(),
    web_bot_auth: webBotAuth.nullable(),
    agent,
    network,
    runtime_integrity: runtimeIntegrity,
    visitor_fingerprint: detailVisitor.nullable(),
    identification: identificationSchema
      .nullable()
      .optional()
      .describe('Present where `include` asks for it.'),
    score: scoreExplanationSchema.optional().describe('Present where `include` asks for it.'),
    log: logPlaceSchema.optional().describe('Present where `include` asks for it.'),
    connection_fingerprint: connectionFingerprint,
    previous_decisions: z.array(detailDecision),
    request: z.strictObject({ url: z.string(), referrer: nullableText, user_agent: z.string() }),
    browser,
    device,
    analysis_coverage: z.strictObject({
      browser: z.boolean(),
      device: z.boolean(),
      network: z.boolean(),
      runtime: z.boolean(),
      behavioral: z.boolean(),
      visitor_identity: z.boolean(),
      attestation: z
        .boolean()
        .nullable()
        .describe('Whether the device vouched for the app. Null for pages.'),
    }),
    evidence,
    scoring: z
      .strictObject({
        version: z.string().describe('Of the signals.'),
        model: z.string().describe('Id of the scoring model, as of GET /v1/scoring/model.'),
      })
      .meta({ id: 'SessionScoring' })
      .describe('What made the decision.'),
    repeats: repeats
      .nullable()
      .describe(
        'Sessions opened before the decision that have something in common with this one, which is included. A count of 100 is that or more. Null where nothing was counted.',
      ),
    signals_fired: z.array(
      z.strictObject({
        signal: z.string(),
        role: z.string(),
        category: z.string(),
        strength: z.string(),
        signal_score: percent,
      }),
    ),
    client_telemetry: clientTelemetry,
    native_runtime_integrity: nativeRuntimeIntegrity.nullable(),
    native_app: nativeApp.nullable(),
    native_carrier: nativeCarrier.nullable(),
    native_motion_print: nativeMotionPrint.nullable(),
    device_identity: deviceIdentity.nullable(),
    install_id: nullableText,
    behavior: z.null(),
  })
  .meta({ id: 'SessionDetail' })

export type SessionDetail = z.output<typeof sessionDetailSchema>

const listMeta = meta
  .extend({
    read_from: timestamp
      .optional()
      .describe(
        'Where reading began: when the first page was read, or `until`. This and `read_to` are present with filters of which each page reads a part of the sessions.',
      ),
    read_to: timestamp
      .nullable()
      .optional()
      .describe(
        'How far back sessions were read so far; null = all. A page may be short, or empty, and more follow.',
      ),
  })
  .meta({ id: 'SessionListMeta' })

export const sessionListSchema = list(sessionSummarySchema).extend({ meta: listMeta })

export type SessionList = z.output<typeof sessionListSchema>
