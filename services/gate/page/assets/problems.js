/**
 * Why a request of the page did not work. `after`: seconds until it may be asked again, where the server said so.
 * @typedef {'not_found' | 'expired' | 'resolved' | 'in_progress' | 'flagged' | 'token' | 'proof' | 'limited'
 *   | 'trouble' | 'offline'} ProblemKind
 * @typedef {{ kind: ProblemKind, after?: number }} Problem
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
 * @param {{ status: number, code?: string | undefined, retryAfter?: string | null }} answer
 * @returns {Problem}
 */
export function problemOf({ status, code, retryAfter }) {
  const kind = byCode[code ?? ''] ?? byStatus[status] ?? 'trouble'
  const after = Number.parseInt(retryAfter ?? '', 10)
  return after > 0 ? { kind, after } : { kind }
}
