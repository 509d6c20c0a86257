// The types of pages that use the SDK: all of them, and nothing else is public.

export interface StartOptions {
  /** `pk_live_...` or `pk_test_...`; never a secret key. */
  publishableKey: string
  /** Base URL of the server; default: where `/t.js` came from. The npm package has no default. */
  endpoint?: string
  /** `pending` = nothing is observed, stored or sent before `consent(true)`. Default: `granted`. */
  consent?: 'granted' | 'pending'
  /** `minimal` = no canvas, graphics, audio, fonts or devices. The organization must allow it. Default: `full`. */
  mode?: 'full' | 'minimal'
  /**
   * For how long each part of the snapshot is waited for once its turn has come, milliseconds. Default and most: 5000.
   * What is late goes with a later body; until then the session is not `human`.
   */
  waitMs?: number
}

export interface Handoff {
  sessionId: string
  /** For your back end, which opens it with a secret key. Opaque here. */
  sealedToken: string
}

export interface HandoffOptions {
  /** A text of yours, as a form's one-time token. The sealed token has its SHA-256 in `hand_off.binding`. */
  binding?: string
}

export interface FingerprintReady {
  ready: true
  sessionId: string
  timestamp: number
}

export interface TidegateClient {
  /** Hands the session over. Calls that overlap share one hand-off; a later call makes a newer token. */
  getSession(options?: HandoffOptions): Promise<Handoff>
  waitForFingerprint(): Promise<FingerprintReady>
  /** Called with every failure, of the background too; returns how to stop. */
  onError(listener: (error: Error) => void): () => void
  /** `true` starts observing. `false` ends it, and deletes what the SDK has stored here. */
  consent(isGranted: boolean): void
  destroy(): void
}
