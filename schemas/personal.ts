import type { EventTypes } from './events.ts'

/**
 * Personal fields by event, including every field that a client can fill with arbitrary text. They are encrypted with
 * the data key of the session or Gate session. Other fields stay readable after the key is deleted, so that read models
 * can be rebuilt.
 */
export const personalFields = {
  SessionOpened: ['sdk_name', 'sdk_version', 'continuity_ids', 'continuity_id'],
  DocumentOpened: [
    'url',
    'referrer',
    'user_agent',
    'ip_address',
    'accept_language',
    'client_hints',
    'header_order',
    'signature_agent',
    'ja4',
    'http2_fingerprint',
    'signature',
  ],
  BatchReceived: ['ip_address', 'user_agent', 'payload'],
  ResultRequested: ['ip_address', 'user_agent', 'payload'],
  SessionScored: [
    'request',
    'visitor',
    'attribution',
    'web_bot_auth',
    'network',
    'connection_fingerprint',
    'browser',
    'device',
    'client_telemetry',
    'native_runtime_integrity',
    'native_app',
    'native_carrier',
    'native_motion_print',
    'device_identity',
    'install_id',
    'hand_off',
    'snapshot_hash',
    'behavior_hash',
    'sdk',
    'agent',
    'attestation',
  ],
  ClientUserAttached: ['client_user_id'],
  VisitorLinked: [
    'continuity_id',
    'presented_continuity_ids',
    'install_id',
    'components',
    'network',
  ],
  GateSessionOpened: ['account_name', 'metadata', 'requested_ip', 'requested_user_agent'],
  LoginSessionOpened: ['account_name', 'requested_ip', 'requested_user_agent'],
  WebhookEventRaised: ['data'],
  WebhookDeliveryAttempted: ['response_body'],
} as const satisfies { readonly [E in keyof EventTypes]?: readonly (keyof EventTypes[E])[] }

/** Unencrypted members of personal records, which later decisions refer to. */
export const readableMembers: Partial<Record<keyof EventTypes, Record<string, readonly string[]>>> =
  {
    SessionScored: { visitor: ['id', 'confidence', 'identified_at', 'method', 'basis'] },
  }
