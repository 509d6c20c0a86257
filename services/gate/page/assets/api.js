/** @import { ApproveBody, Approved, Consent, Resolution, Problem, ProblemKind } from './state.js' */

/**
 * `skewMs`: server clock minus the browser's clock, in milliseconds.
 * @template Data
 * @typedef {{ data: Data, skewMs: number }} ApiResult
 */

/**
 * Returns functions that send the page's requests. Each resolves to the response data, or rejects with a Problem.
 * @param {string} gateSessionId
 * @returns {{
 *   loadConsent: () => Promise<ApiResult<Consent>>,
 *   approve: (body: ApproveBody) => Promise<ApiResult<Approved>>,
 *   decline: () => Promise<ApiResult<unknown>>,
 *   reportClosing: (approveToken: string) => void
 * }} `reportClosing`: reports that the page is being closed; the approve token identifies the page
 */
export function createConsentApi(gateSessionId) {
  const base = `/v1/gate/sessions/${encodeURIComponent(gateSessionId)}`
  return {
    loadConsent: () => send(`${base}/consent`, {}),
    approve: (body) =>
      send(`${base}/approve`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    decline: () => send(`${base}/cancel`, { method: 'POST', keepalive: true }),
    reportClosing(approveToken) {
      // A beacon with a JSON body has an Origin header, even from a page that sends no referrer.
      const body = JSON.stringify({ approve_token: approveToken })
      navigator.sendBeacon(
        `${base}/cancel?closing=1`,
        new Blob([body], { type: 'application/json' }),
      )
    },
  }
}

const requestTimeoutMs = 20_000

/**
 * @template Data
 * @param {string} url
 * @param {RequestInit} init
 * @returns {Promise<ApiResult<Data>>}
 */
async function send(url, init) {
  const { response, body } = await fetchJson(url, init)
  const { status, headers } = response
  const serverTime = Date.parse(headers.get('date') ?? '')
  if (response.ok && body?.data)
    return { data: body.data, skewMs: Number.isNaN(serverTime) ? 0 : serverTime - Date.now() }
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
async function fetchJson(url, init) {
  try {
    const response = await fetch(url, {
      ...init,
      cache: 'no-store',
      signal: AbortSignal.timeout(requestTimeoutMs),
    })
    return { response, body: await response.json().catch(() => undefined) }
  } catch {
    throw /** @type {Problem} */ ({ kind: 'offline' })
  }
}

/** @type {Record<string | number, ProblemKind | undefined>} */
const problemKinds = {
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
 * Describes an unsuccessful response.
 * @param {{ status: number, code?: string | undefined, retryAfter?: string | null, details?: { fields?: unknown } }} response
 * @returns {Problem}
 */
export function problemOf({ status, code, retryAfter, details }) {
  const kind =
    kindOfField(details?.fields) ?? problemKinds[code ?? ''] ?? problemKinds[status] ?? 'trouble'
  const waitSeconds = Number.parseInt(retryAfter ?? '', 10)
  const resolution = kind === 'resolved' ? resolutionOf(details?.fields) : undefined
  return { kind, ...(waitSeconds > 0 && { waitSeconds }), ...(resolution && { resolution }) }
}

/**
 * @param {unknown} fields
 * @returns {ProblemKind | undefined}
 */
function kindOfField(fields) {
  const names = Array.isArray(fields) ? fields.map((field) => field?.name) : []
  if (names.includes('account_name')) return 'name_required'
  return names.includes('verdict') ? 'verdict' : undefined
}

/** @type {Record<string, Resolution['view']>} */
const resolvedViews = {
  approved: 'approved',
  declined: 'declined',
  closed: 'closed',
  integrator_failed: 'failed',
  claim_failed: 'unclaimed',
}

/**
 * @param {unknown} fields
 * @returns {Resolution | undefined}
 */
function resolutionOf(fields) {
  const issues = new Map(
    Array.isArray(fields) ? fields.map((field) => [field?.name, field?.issue]) : [],
  )
  const view = resolvedViews[issues.get('status')]
  return view && { view, kind: issues.get('kind') === 'login' ? 'login' : 'signup' }
}
