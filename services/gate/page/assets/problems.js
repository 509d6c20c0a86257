/**
 * Why a request of the page did not work. `after`: seconds until it may be asked again, where the server said so;
 * `ended`: how the request ended, and what it was for.
 * @typedef {'not_found' | 'expired' | 'resolved' | 'in_progress' | 'flagged' | 'token' | 'proof' | 'limited'
 *   | 'trouble' | 'offline'} ProblemKind
 * @typedef {{ view: 'approved' | 'declined' | 'closed' | 'failed', kind: 'signup' | 'login' }} Ended
 * @typedef {{ kind: ProblemKind, after?: number, ended?: Ended }} Problem
 */

/** @type {Record<string, ProblemKind>} */
const byCode = {
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
}

/** @type {Record<number, ProblemKind>} */
const byStatus = { 404: 'not_found', 410: 'expired', 429: 'limited' }

/**
 * What an answer means that is no success.
 * @param {{ status: number, code?: string | undefined, retryAfter?: string | null, details?: { fields?: unknown } }} answer
 * @returns {Problem}
 */
export function problemOf({ status, code, retryAfter, details }) {
  const kind = byCode[code ?? ''] ?? byStatus[status] ?? 'trouble'
  const after = Number.parseInt(retryAfter ?? '', 10)
  const ended = kind === 'resolved' ? endedBy(details?.fields) : undefined
  return { kind, ...(after > 0 && { after }), ...(ended && { ended }) }
}

/** @type {Record<string, Ended['view']>} */
const endings = { approved: 'approved', declined: 'declined', closed: 'closed', integrator_failed: 'failed' }

/**
 * @param {unknown} fields
 * @returns {Ended | undefined}
 */
function endedBy(fields) {
  const issueOf = (/** @type {string} */ name) =>
    Array.isArray(fields) ? fields.find((field) => field?.name === name)?.issue : undefined
  const view = endings[issueOf('status')]
  return view && { view, kind: issueOf('kind') === 'login' ? 'login' : 'signup' }
}
