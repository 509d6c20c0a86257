/** @import { ApproveBody, Approved, Consent, Ended, Problem, ProblemKind } from './state.js' */

/**
 * `skewMs`: how far the server's clock is ahead of this one.
 * @template Data
 * @typedef {{ data: Data, skewMs: number }} Answer
 */

/**
 * The requests of one consent page. They resolve with the answer and throw a Problem, nothing else.
 * @param {string} gateSessionId
 * @returns {{
 *   consent: () => Promise<Answer<Consent>>,
 *   approve: (body: ApproveBody) => Promise<Answer<Approved>>,
 *   decline: () => Promise<Answer<unknown>>,
 *   closing: (approveToken: string) => void
 * }} `closing`: this page is being closed; the token says which page it was
 */
export function createConsentApi(gateSessionId) {
  const base = `/v1/gate/sessions/${encodeURIComponent(gateSessionId)}`
  return {
    consent: () => ask(`${base}/consent`, {}),
    approve: (body) =>
      ask(`${base}/approve`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    decline: () => ask(`${base}/cancel`, { method: 'POST', keepalive: true }),
    closing(approveToken) {
      // As JSON the beacon names its origin, which pages without a referrer do not name otherwise.
      const body = JSON.stringify({ approve_token: approveToken })
      navigator.sendBeacon(
        `${base}/cancel?closing=1`,
        new Blob([body], { type: 'application/json' }),
      )
    },
  }
}

// Until a request without an answer counts as lost.
const timeoutMs = 20_000

/**
 * @template Data
 * @param {string} url
 * @param {RequestInit} init
 * @returns {Promise<Answer<Data>>}
 */
async function ask(url, init) {
  const { response, body } = await answerOf(url, init)
  const { status, headers } = response
  const at = Date.parse(headers.get('date') ?? '')
  if (response.ok && body?.data)
    return { data: body.data, skewMs: Number.isNaN(at) ? 0 : at - Date.now() }
  throw problemOf({
    status,
    code: body?.error?.code,
    retryAfter: headers.get('retry-after'),
    details: body?.error?.details,
  })
}

/**
 * @param {string} url
 * @param {RequestInit} init
 */
async function answerOf(url, init) {
  try {
    const response = await fetch(url, {
      ...init,
      cache: 'no-store',
      signal: AbortSignal.timeout(timeoutMs),
    })
    return { response, body: await response.json().catch(() => undefined) }
  } catch {
    throw /** @type {Problem} */ ({ kind: 'offline' })
  }
}

/** @type {Record<string | number, ProblemKind | undefined>} */
const problems = {
  'gate.session_not_found': 'not_found',
  'gate.session_expired': 'expired',
  'gate.session_already_resolved': 'resolved',
  'gate.approval_in_progress': 'in_progress',
  'gate.bot_detected': 'flagged',
  'gate.approve_token_invalid': 'token',
  'gate.svc_proof_required': 'proof',
  'gate.svc_proof_invalid': 'proof',
  'gate.rate_limit': 'limited',
  'rate_limit.exceeded': 'limited',
  404: 'not_found',
  410: 'expired',
  429: 'limited',
}

/**
 * @param {{ status: number, code?: string | undefined, retryAfter?: string | null, details?: { fields?: unknown } }} answer
 *   one without success
 * @returns {Problem}
 */
export function problemOf({ status, code, retryAfter, details }) {
  const kind = kindOfField(details?.fields) ?? problems[code ?? ''] ?? problems[status] ?? 'trouble'
  const after = Number.parseInt(retryAfter ?? '', 10)
  const ended = kind === 'resolved' ? endedBy(details?.fields) : undefined
  return { kind, ...(after > 0 && { after }), ...(ended && { ended }) }
}

/**
 * @param {unknown} fields
 * @returns {ProblemKind | undefined}
 */
function kindOfField(fields) {
  const names = Array.isArray(fields) ? fields.map((field) => field?.name) : []
  if (names.includes('account_name')) return 'unnamed'
  return names.includes('verdict') ? 'verdict' : undefined
}

/** @type {Record<string, Ended['view']>} */
const endings = {
  approved: 'approved',
  declined: 'declined',
  closed: 'closed',
  integrator_failed: 'failed',
  claim_failed: 'unclaimed',
}

/**
 * @param {unknown} fields
 * @returns {Ended | undefined}
 */
function endedBy(fields) {
  const issues = new Map(
    Array.isArray(fields) ? fields.map((field) => [field?.name, field?.issue]) : [],
  )
  const view = endings[issues.get('status')]
  return view && { view, kind: issues.get('kind') === 'login' ? 'login' : 'signup' }
}
