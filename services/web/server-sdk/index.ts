export type {
  Mark,
  MarkRequestInput,
  ScoredRequest,
  SessionAggregates,
  SessionDetail,
  SessionSummary,
  VisitorFingerprintDetail,
  VisitorFingerprintSummary,
} from './api.ts'
export {
  ApiError,
  type Client,
  type ClientOptions,
  createClient,
  failClosed,
  failOpen,
  type RequestToScore,
  UnavailableError,
} from './client.ts'
export type { VerifiedSession } from './session.ts'
export {
  openToken,
  TokenError,
  type Verification,
  type VerifyOptions,
  verifyToken,
} from './token.ts'
export { verifyWebhook, WebhookError, type WebhookEvent } from './webhook.ts'
