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
import { relatedSchema, timelineSchema } from './related.ts'
import { logPositionSchema, scoreExplanationSchema } from './score.ts'

const clientUserId = z.string().nullable().meta({
  maxLength: 256,
  description: 'Your id of the user, set with `PATCH /v1/sessions/{sessionId}`.',
})

const mark = z
  .strictObject({
    id: z.string(),
    label: markLabel,
    reason: markReason.nullable(),
    marked_at: timestamp,
  })
  .meta({ id: 'SessionMark', description: 'Newest mark from `POST /v1/marks`.' })

const facts = z
  .strictObject({
    signals: z.array(z.string()).describe('Signals that fired.'),
    top_signal: nullableText.describe(
      'Signal that speaks most for the verdict: of a human the trust signal, otherwise the risk signal, with the most points. Null if none fired.',
    ),
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
    description:
      'Fields for filtering and grouping. Null once the decisions of the session expired.',
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
      'Host of the `Signature-Agent` header, with the port unless it is 443.',
    ),
  })
  .meta({
    id: 'SessionWebBotAuth',
    description: 'Web Bot Auth signature of the request. Null if it had no signature headers.',
  })

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
    sources: z.array(z.string()).describe('Sources that were consulted.'),
    unchecked: z
      .array(z.string())
      .describe(
        'Members that are `false`, `clean` or empty only because no source was consulted: members of `runtime_integrity` by name, others by path.',
      ),
    missing: z
      .array(z.string())
      .describe('Members that the SDK always sends, but that are absent.'),
    withheld: z
      .array(
        z.strictObject({
          group: z.string().describe('Part of the snapshot, such as `canvas`.'),
          reason: z.enum(withheldReasons),
        }),
      )
      .describe(
        'Absent parts of the snapshot that this browser can plausibly lack, with the reason.',
      ),
    impossible: z.array(z.string()).describe('Members with a value that no browser has.'),
    claimed: z
      .array(z.string())
      .describe('Unverified members that the app reported about itself and its device.'),
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

/** Members are ordered by their importance to readers. */
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
      .describe('Only with `include=identification`.'),
    score: scoreExplanationSchema.optional().describe('Only with `include=score`.'),
    log: logPositionSchema.optional().describe('Only with `include=log`.'),
    timeline: timelineSchema.optional(),
    related: relatedSchema.optional(),
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
      attestation: z.boolean().nullable().describe('True if the app was attested. Null for pages.'),
    }),
    evidence,
    scoring: z
      .strictObject({
        version: z.string().describe('Version of the signals.'),
        model: z.string().describe('Id of the scoring model, as in `GET /v1/scoring/model`.'),
      })
      .meta({ id: 'SessionScoring' })
      .describe('Versions that made the decision.'),
    repeats: repeats
      .nullable()
      .describe(
        'Numbers of sessions, visitors, addresses and users that share a value with this session, counted up to the decision and including this session. 100 means 100 or more. Null if nothing was counted.',
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
        'Time from which sessions were read: the time of the first page or `until`, or `since` in ascending order. Present, like `read_to`, if the filters let each page read only a part of the sessions.',
      ),
    read_to: timestamp
      .nullable()
      .optional()
      .describe(
        'Time up to which sessions were read so far; null once all were read. Until then, a short or empty page does not mean that there are no more.',
      ),
  })
  .meta({ id: 'SessionListMeta' })

export const sessionListSchema = list(sessionSummarySchema).extend({ meta: listMeta })

export type SessionList = z.output<typeof sessionListSchema>
