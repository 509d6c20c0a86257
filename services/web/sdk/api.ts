// The SDK's entire public API. No other type is public.

export interface StartOptions {
  /** `pk_live_...` or `pk_test_...`; never a secret key. */
  publishableKey: string
  /** Base URL of the server. Default: the server that served `/t.js`. Required with the npm package. */
  endpoint?: string
  /** With `pending`, the SDK observes, stores and sends nothing until you call `consent(true)`. Default: `granted`. */
  consent?: 'granted' | 'pending'
  /** `minimal` skips canvas, graphics, audio, fonts and devices. The organization must allow it. Default: `full`. */
  mode?: 'full' | 'minimal'
  /**
   * Timeout for each part of the snapshot, in milliseconds. Default and maximum: 5000. Late parts are sent with a later
   * request; until then the verdict can't be `human`.
   */
  waitMs?: number
}

export interface Handoff {
  sessionId: string
  /** Encrypted result. Send it to your back end, which opens it with a secret key. */
  sealedToken: string
}

export interface HandoffOptions {
  /** Any text, such as a form's one-time token. Its SHA-256 becomes `hand_off.binding` in the sealed token. */
  binding?: string
}

export interface FingerprintReady {
  ready: true
  sessionId: string
  timestamp: number
}

export interface TidegateClient {
  /** Requests a decision and its sealed token. Overlapping calls share a request; a later call gets a newer token. */
  getSession(options?: HandoffOptions): Promise<Handoff>
  waitForFingerprint(): Promise<FingerprintReady>
  /** Adds a listener for all failures, including background ones. Returns a function that removes it. */
  onError(listener: (error: Error) => void): () => void
  /** `true` starts observing. `false` stops it and deletes all data that the SDK has stored in this browser. */
  consent(isGranted: boolean): void
  destroy(): void
}
