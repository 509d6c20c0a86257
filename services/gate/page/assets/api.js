import { problemOf } from './problems.js'

/**
 * `skewMs`: how far the server's clock is ahead of this one.
 * @template Data
 * @typedef {{ data: Data, skewMs: number }} Answer
 */

/**
 * The requests of one consent page. They resolve with the answer and throw a Problem, nothing else.
 * @param {string} gateSessionId
 */
export function createConsentApi(gateSessionId) {
  const base = `/v1/gate/sessions/${encodeURIComponent(gateSessionId)}`
  return {
    /** @returns {Promise<Answer<import('./state.js').Consent>>} */
    consent: () => ask(`${base}/consent`, {}),
    /**
     * @param {{ approve_token: string, sealed_token?: string }} body
     * @returns {Promise<Answer<import('./state.js').Approved>>}
     */
    approve: (body) => ask(`${base}/approve`, post(body)),
    /** @returns {Promise<Answer<unknown>>} */
    decline: () => ask(`${base}/cancel`, { method: 'POST', keepalive: true }),
    /**
     * Tells that this page is being closed, also when nobody is left to hear an answer. As JSON the beacon names its
     * origin, which pages that keep their address to themselves otherwise do not.
     * @param {string} approveToken tells the server which page it was
     */
    closing(approveToken) {
      const body = JSON.stringify({ approve_token: approveToken })
      navigator.sendBeacon(`${base}/cancel?closing=1`, new Blob([body], { type: 'application/json' }))
    },
  }
}

/** @param {object} body */
function post(body) {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
}

/** Milliseconds until a request without an answer counts as lost. */
const timeoutMs = 20_000

/**
 * @template Data
 * @param {string} url
 * @param {RequestInit} init
 * @returns {Promise<Answer<Data>>}
 */
async function ask(url, init) {
  const { response, body } = await answerOf(url, init)
  if (response.ok && body?.data) return { data: body.data, skewMs: skewOf(response) }
  const { status, headers } = response
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
    const options = {
      ...init,
      cache: /** @type {const} */ ('no-store'),
      signal: AbortSignal.timeout(timeoutMs),
    }
    const response = await fetch(url, options)
    return { response, body: await response.json().catch(() => undefined) }
  } catch {
    throw /** @type {import('./problems.js').Problem} */ ({ kind: 'offline' })
  }
}

/** @param {Response} response */
function skewOf({ headers }) {
  const at = Date.parse(headers.get('date') ?? '')
  return Number.isNaN(at) ? 0 : at - Date.now()
}
