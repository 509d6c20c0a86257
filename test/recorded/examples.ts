import { createHash } from 'node:crypto'
import path from 'node:path'
import { base32Characters, derivedHexId } from '../../infra/ids.ts'
import type { Example } from '../../services/web/docs/api-samples.ts'
import type { Recorded } from './recorder.ts'

export const examplesFile = path.resolve(
  import.meta.dirname,
  '../../services/web/docs/api-examples.json',
)

/** Name of the recorded answer that the API reference shows, by operation. */
export const exampleNames: Record<string, string> = {
  listSessions: 'list sessions: two',
  countSessions: 'count sessions: by verdict',
  listSessionAnomalies: 'anomalies',
  getSession: 'session: of a bot',
  updateSession: 'update session: a user',
  markSessions: 'mark: a bot',
  deleteMark: 'delete mark: of the bot',
  listViews: 'list views',
  createView: 'save view',
  updateView: 'update view: another name',
  deleteView: 'delete view',
  listAlerts: 'list alerts',
  createAlert: 'create alert',
  updateAlert: 'update alert: another threshold',
  deleteAlert: 'delete alert',
  getScoringModel: 'getScoringModel with a narrow key',
  listVisitorFingerprints: 'list visitors: by how often they were seen',
  getVisitorFingerprint: 'visitor: who came back',
  splitVisitor: 'split visitor',
  mergeVisitors: 'merge visitors',
  scoreRequests: 'requests: a name that is not proven',
  checkAgentIpRotation: 'rotation: address of another country',
  listAgentDirectories: 'agent directories',
  addAgentDirectory: 'add agent directory: all is well',
  removeAgentDirectory: 'remove agent directory, once',
  listWebhookEndpoints: 'list endpoints with a limit',
  createWebhookEndpoint: 'create endpoint to change',
  updateWebhookEndpoint: 'update endpoint: another URL',
  disableWebhookEndpoint: 'disable',
  rotateWebhookEndpointSecret: 'rotate secret once',
  sendTestWebhook: 'test that is accepted',
  listWebhookDeliveries: 'list deliveries: of an endpoint',
  listWebhookAttempts: 'attempts',
  retryWebhookDelivery: 'retry a delivery',
  resendWebhookDeliveries: 'resend: what failed',
  listEvents: 'list events: session.result.persisted at an endpoint',
  retrieveEvent: 'event: session.fingerprint.calculated',
  getOrganization: 'own organization',
  createOrganization: 'idempotent: first',
  updateOrganization: 'update organization: another name',
  listOrganizationAuditLog: 'audit log: one',
  listOrganizationApiKeys: 'list keys: three',
  createOrganizationApiKey: 'create key: of the test environment',
  updateOrganizationApiKey: 'update secret key: other scopes',
  rotateOrganizationApiKey: 'rotate',
  revokeOrganizationApiKey: 'revoke again',
  exportVisitor: 'export visitor',
  eraseVisitor: 'erase visitor',
  exportUser: 'export user',
  eraseUser: 'erase user',
  eraseGateAccount: 'erase account',
  listGateAgentAccounts: 'list agent accounts',
  revokeGateAgentAccountToken: 'revoke the token of an account',
  countGateSignups: 'count signups',
  createGateSession: 'sign up to approve',
  pollGateSession: 'poll an approved one',
  getGateSessionConsent: 'consent',
  approveGateSession: 'approve',
  claimGateSession: 'claim',
  cancelGateSession: 'cancel',
  eraseGateSession: 'erase by the receipt',
  acknowledgeGateSessionDelivery: 'ack: right token',
  listGateRegistryServices: 'registry',
  getGateRegistryService: 'registry entry acme',
  listManagedGateServices: 'services',
  createManagedGateService: 'create service',
  getManagedGateService: 'service',
  updateManagedGateService: 'update service: another name',
  disableManagedGateService: 'disable service',
  getManagedGateServiceDomain: 'domain',
  verifyGateAgentToken: 'verify a token',
  revokeGateAgentToken: 'revoke a token',
  createGateLoginSession: 'log in',
  consumeGateLoginSessionCode: 'consume',
  openCollectSession: 'open with a restricted key from its page',
  sendCollectBatch: 'robin: batches 1',
  handOffCollectSession: 'robin: results 1',
  reportNetworkCheck: 'network check: anything',
  pingCollect: 'a ping',
  getBrowserSdk: 'SDK',
  getLiveness: 'page /livez',
  getReadiness: 'page /readyz',
  getMetrics: 'metrics',
}

/** Returns the examples of the reference, with values instead of the recording's placeholders. */
export function examplesOf(recorded: Recorded[]): Record<string, Example> {
  const byName = new Map(recorded.map((one) => [one.name, one]))
  return Object.fromEntries(
    Object.entries(exampleNames).map(([operationId, name]) => {
      const found = byName.get(name)
      if (!found) throw new Error(`${operationId}: no answer is called "${name}"`)
      const { path: url, request, status, json } = found
      const example: Example = {
        path: fillText(url),
        ...(request !== undefined && { request: fill(request) }),
        status,
        ...(json !== undefined && { response: fill(json) }),
      }
      return [operationId, example]
    }),
  )
}

const numbers: Record<string, number> = { '<count>': 3, '<milliseconds>': 4 }
const now = Date.parse('2026-11-30T09:30:00Z')
const minutes: Record<string, number> = {
  '5 minutes': 5,
  '15 minutes': 15,
  '1 day': 1440,
  '30 days': 43_200,
  '90 days': 129_600,
}

/** Fills the placeholders of a JSON value. */
function fill(value: unknown): unknown {
  if (typeof value === 'string') return fillWhole(value)
  if (Array.isArray(value)) return value.map(fill)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, fill(member)]))
}

function fillWhole(text: string): unknown {
  if (text in numbers) return numbers[text]
  if (text === '<counts>') return repeats
  if (text === '<questions>' || text === '<drawing>') return []
  const [, term] = /^<epoch(?: in (.*))?>$/.exec(text) ?? []
  if (text.startsWith('<epoch')) return now + (minutes[term ?? ''] ?? 0) * 60_000
  return fillText(text)
}

function fillText(text: string): string {
  return text
    .replace(/sam%20%C3%BC|sam ü/g, 'user_1')
    .replace(/https?:\/\/<server>/g, 'https://tidegate.example')
    .replace(/https?:\/\/<receiver>/g, 'https://shop.example')
    .replace(/<([a-z_ ]+?)(?: in (\d+ \w+))?(?: (\d+))?>/g, (placeholder, kind, term) =>
      sample(placeholder, kind, term),
    )
}

function sample(placeholder: string, kind: string, term: string | undefined): string {
  switch (kind) {
    case 'time':
    case 'time or null':
      return new Date(now + (minutes[term ?? ''] ?? 0) * 60_000).toISOString()
    case 'request':
    case 'earlier request':
      return derivedHexId('req', placeholder)
    case 'preview':
      return `sk_live_${characters(placeholder, 4)}...${characters(placeholder, 8).slice(4)}`
    case 'secret':
      return `whsec_${createHash('sha256').update(placeholder).digest('base64')}`
    case 'seconds':
      return String(now / 1000)
    case 'claim code':
      return '184 166'
    case 'not delivered':
      return 'pending'
    case 'opaque':
    case 'challenge':
    case 'state':
    case 'document':
      return createHash('sha256').update(placeholder).digest('base64url')
    default:
      return `${kind}_${characters(placeholder, kind.length > 5 || kind.includes('_') ? 38 : 26)}`
  }
}

const characters = (seed: string, length: number): string =>
  base32Characters(createHash('sha512').update(seed).digest().subarray(0, length))

const counts = { five_minutes: 1, hour: 1, day: 1 }
const repeats = {
  address_sessions: counts,
  network_sessions: counts,
  visitor_sessions: counts,
  snapshot_sessions: counts,
  behavior_sessions: counts,
  address_visitors: counts,
  visitor_addresses: counts,
  visitor_users: counts,
  user_visitors: counts,
}
