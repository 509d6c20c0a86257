/** The JSON bodies of the collect protocol, as clients see them. */
export type ClientPlatform = 'web' | 'ios' | 'android'

export interface SdkInfo {
  name: string
  version: string
  platform: ClientPlatform
}

export interface PageInfo {
  url: string
  referrer?: string | null | undefined
}

export interface OpenRequest {
  /** Raw X25519 public key, base64url. */
  clientPublicKey: string
  resumeToken?: string
  /** `fingerprint.state.id` of an earlier session in the same continuity scope. */
  continuity?: string
  sdk: SdkInfo
  page?: PageInfo
}

/** One drawing step of the canvas challenge; units are canvas pixels and radians. */
export type CanvasOp =
  | { op: 'rect'; x: number; y: number; width: number; height: number; color: string }
  | { op: 'arc'; x: number; y: number; radius: number; start: number; end: number; color: string }
  | { op: 'text'; x: number; y: number; size: number; text: string; color: string }

export interface CanvasChallenge {
  ops: CanvasOp[]
  width: number
  height: number
}

export interface OpenResponse {
  sessionId: string
  documentId: string
  resumeToken: string
  continuityScope: string
  sharedPostVersion: number
  resumed: boolean
  challenge: string
  /** Raw X25519 public key, base64url. */
  serverPublicKey: string
  /** Goes into the next body; names its sequence number. */
  nonce: string
  timingNonce: string
  canvasChallenge: CanvasChallenge
}

export interface Fingerprint {
  ready: boolean
  /** Epoch milliseconds. */
  timestamp: number
  sessionId: string
  state: { id: string }
  integrity: { responseHmac: string }
}

export interface BatchResponse {
  ack: true
  nonce: string
  seq: number
  fingerprint?: Fingerprint
  next: { intervalMs: number }
}

export interface ResultResponse {
  sessionId: string
  sealedToken: string
  nonce: string
  integrity: { responseHmac: string }
}
