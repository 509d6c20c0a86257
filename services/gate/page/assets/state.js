import { loginAddress } from './text.js'

// State machine of the consent page: `transition` maps a state and an event to the next state and the effects to run.

/**
 * Service as in the public registry. All texts are untrusted.
 * @typedef {{
 *   id: string, name: string, description: string, website: string, dashboard_login_url?: string,
 *   env_vars: { name: string, key: string, secret: boolean }[],
 *   branding?: Branding, consent?: { terms_url?: string, privacy_url?: string }, verified_domain?: string
 * }} Service
 * @typedef {{ key: string, name: string, secret: boolean, group: 'verified' | 'service' | 'other' | 'refused' }} Variable
 *   a variable that the agent receives; `group`: ownership of its name
 * @typedef {{
 *   logo_url?: string, primary_color?: string, secondary_color?: string, ascii_art?: string, verified?: boolean
 * }} Branding
 *
 * @typedef {'not_found' | 'expired' | 'resolved' | 'in_progress' | 'flagged' | 'token' | 'proof' | 'verdict' | 'name_required'
 *   | 'limited' | 'trouble' | 'offline'} ProblemKind
 * @typedef {{ view: 'approved' | 'declined' | 'closed' | 'failed' | 'unclaimed', kind: 'signup' | 'login' }} Resolution
 * @typedef {{ kind: ProblemKind, waitSeconds?: number, resolution?: Resolution }} Problem of a failed request.
 *   `waitSeconds`: time until a retry is allowed; `resolution`: how the consent request ended
 * @typedef {{ status?: string, claim_code?: string, receipt_url?: string, redirect_url?: string | null }} Approved
 *   response to an approval
 * @typedef {{
 *   gate_session_id: string, kind: 'signup' | 'login', status: 'pending',
 *   account_name: string, service: Service, approve_token: string, expires_at: string, confirmation_code: string,
 *   requested_by: { ip_address: string | null, user_agent: string | null, at: string, network?: Network },
 *   approval?: 'in_progress', claim?: 'waiting', metadata?: Record<string, unknown>, name_required?: boolean,
 *   variables?: Variable[]
 * }} Consent `name_required`: the server rejects approvals without the account name
 * @typedef {{ same: boolean | null, country: string | null, operator: string | null }} Network of the requester; `same`:
 *   this browser is in it, null if unknown
 * @typedef {'loading' | 'review' | 'claiming' | 'working' | 'approved' | 'leaving' | 'declined' | 'closed' | 'failed' | 'unclaimed' | 'expired'
 *   | 'resolved' | 'not_found' | 'limited' | 'trouble' | 'offline' | 'elsewhere' | 'misdirected'} View
 * @typedef {{ kind: 'flagged' | 'proof' | 'verdict' | 'name_required' | 'limited' | 'trouble' | 'offline' | 'refreshed', waitSeconds?: number }} Notice
 * @typedef {{
 *   view: View, consent: Consent | null, busy: 'approve' | 'decline' | null, notice: Notice | null,
 *   refusedProofs: number, sealedToken: string | null, accepted: string[], code: string | null, receipt: string | null, waitSeconds: number | null, kind: 'signup' | 'login' | null
 * }} State
 * @typedef {{ type: 'opened' | 'retry' | 'returned' | 'decline' | 'declined' | 'no_proof' | 'poll'
 *     | 'time_up' | 'opened_elsewhere' | 'closed_elsewhere' | 'came_to_front' }
 *   | { type: 'approve', accepted?: string[] }
 *   | { type: 'loaded', consent: Consent, code?: string | null } | { type: 'approved', data: Approved } | { type: 'proved', sealedToken: string }
 *   | { type: 'not_loaded' | 'not_approved' | 'not_declined', problem: Problem }} Event
 * @typedef {{ do: 'load' | 'decline' } | { do: 'prove', approveToken: string }
 *   | { do: 'approve', body: ApproveBody }
 *   | { do: 'wait', seconds: number, event: Event } | { do: 'leave', url: string }} Effect
 * @typedef {{
 *   approve_token: string, sealed_token?: string, accepted_env_vars?: string[], account_name?: string
 * }} ApproveBody
 * @typedef {[State, ...Effect[]]} Step the next state, and the effects to run
 *
 * Part of the page that shows one view. `announce` makes screen readers read a text.
 * @typedef {{ show(state: State): void, element: HTMLElement, stop?: () => void }} Part
 * @typedef {{ dispatch: (type: 'approve' | 'decline' | 'retry' | 'time_up', accepted?: string[]) => void, clock: () => number,
 *   announce: (text: string) => void }} PartOptions
 */

/** @type {State} */
export const initialState = {
  view: 'loading',
  consent: null,
  busy: null,
  notice: null,
  refusedProofs: 0,
  sealedToken: null,
  code: null,
  receipt: null,
  accepted: [],
  waitSeconds: null,
  kind: null,
}

/**
 * Returns the next state and its effects. An event that does not apply in the state changes nothing.
 * @param {State} state
 * @param {Event} event
 * @returns {Step}
 */
export function transition(state, event) {
  switch (event.type) {
    case 'opened':
    case 'returned':
      return steps.reload(state)
    case 'retry':
      return ['limited', 'trouble', 'offline', 'elsewhere'].includes(state.view)
        ? steps.reload(state)
        : [state]
    case 'loaded':
      return acceptsLoad(state) ? onLoaded(state, event.consent, event.code ?? null) : [state]
    case 'not_loaded':
      return acceptsLoad(state) ? onFailure.load(state, event.problem) : [state]
    case 'approve':
      return isUndecided(state)
        ? steps.prove({ ...markBusy(state, 'approve'), accepted: event.accepted ?? [] })
        : [state]
    case 'decline':
      return isUndecided(state) || (state.view === 'claiming' && state.busy === null)
        ? [markBusy(state, 'decline'), { do: 'decline' }]
        : [state]
    case 'proved':
      return steps.approve({ ...state, sealedToken: event.sealedToken })
    case 'no_proof':
      return [review(state, { kind: 'proof' })]
    case 'poll':
      return state.view === 'working' || state.view === 'claiming' ? steps.approve(state) : [state]
    case 'approved':
      return onApproved(state, event.data)
    case 'not_approved':
      return onFailure.approve(state, event.problem)
    case 'declined':
      return [switchTo(state, 'declined')]
    case 'not_declined':
      return onFailure.decline(state, event.problem)
    case 'time_up':
      return isUndecided(state) ? [switchTo(state, 'expired')] : [state]
    case 'opened_elsewhere':
      return isUndecided(state) ? [switchTo(state, 'elsewhere')] : [state]
    case 'closed_elsewhere':
      return state.view === 'elsewhere' ? steps.reload(state) : [state]
    case 'came_to_front':
      return steps.cameToFront(state)
  }
}

/**
 * Returns true while the person can decide. Closing the page then rejects the request.
 * @param {State} state
 */
export function isUndecided({ view, busy }) {
  return view === 'review' && busy === null
}

/**
 * Returns true while the result of a load can change the view, that is, until the person has decided.
 * @param {State} state
 */
function acceptsLoad({ view }) {
  return view === 'loading' || view === 'review' || view === 'elsewhere'
}

/**
 * Switches to a view and clears the data of the previous one.
 * @param {State} state
 * @param {View} view
 * @returns {State}
 */
function switchTo(state, view) {
  return { ...state, view, busy: null, notice: null, sealedToken: null, waitSeconds: null }
}

/**
 * Returns to the review, with a notice that explains why nothing was decided.
 * @param {State} state
 * @param {Notice} notice
 * @returns {State}
 */
function review(state, notice) {
  return { ...state, view: 'review', busy: null, sealedToken: null, notice }
}

/**
 * @param {State} state
 * @param {'approve' | 'decline'} busy
 * @returns {State}
 */
function markBusy(state, busy) {
  return { ...state, busy, notice: null, refusedProofs: 0 }
}

/** @type {Record<'reload' | 'cameToFront' | 'prove' | 'approve', (state: State) => Step>} */
const steps = {
  reload: (state) => [switchTo(state, 'loading'), { do: 'load' }],

  // The page in front can decide. A request on display stays visible while it is reloaded.
  cameToFront(state) {
    if (state.view === 'elsewhere') return steps.reload(state)
    return isUndecided(state) ? [state, { do: 'load' }] : [state]
  },

  prove: (state) =>
    state.consent ? [state, { do: 'prove', approveToken: state.consent.approve_token }] : [state],

  approve(state) {
    const { consent, sealedToken, accepted } = state
    if (!consent) return [state]
    const variables = consent.kind === 'signup' && { accepted_env_vars: accepted }
    const proof = sealedToken === null ? {} : { sealed_token: sealedToken, ...variables }
    const name = needsAccountName(consent) ? { account_name: consent.account_name } : {}
    return [
      state,
      { do: 'approve', body: { approve_token: consent.approve_token, ...proof, ...name } },
    ]
  },
}

/**
 * Returns true if the person must type the account name, because the server requires it or the agent isn't known to be
 * in the browser's network.
 * @param {Consent} consent
 */
export function needsAccountName({ requested_by: { network }, name_required }) {
  return network?.same !== true || name_required === true
}

/**
 * @param {State} state
 * @param {Consent} data
 * @param {string | null} code saved before a reload
 * @returns {Step}
 */
function onLoaded(state, data, code) {
  const consent = state.consent?.name_required ? { ...data, name_required: true } : data
  if (state.view === 'review') {
    // A proof in progress is bound to the previous approve token, so keep that token.
    if (!isUndecided(state)) return [state]
    if (consent.approval === undefined && consent.claim === undefined)
      return [{ ...state, consent }]
  }
  const fresh = { ...switchTo(state, 'loading'), consent }
  // The server has already accepted a proof. Approving again returns the outcome.
  if (consent.approval === 'in_progress') return steps.approve({ ...fresh, view: 'working' })
  if (consent.claim === 'waiting') return steps.approve({ ...fresh, view: 'claiming', code })
  return [
    { ...fresh, view: 'review', notice: state.notice?.kind === 'refreshed' ? state.notice : null },
  ]
}

/**
 * @param {State} state
 * @param {Approved} data
 * @returns {Step}
 */
function onApproved(state, data) {
  if (data.status === 'pending') return onPending(state, data.claim_code ?? null)
  if (state.consent?.kind !== 'login')
    return [{ ...switchTo(state, 'approved'), receipt: data.receipt_url ?? null }]
  const url = loginAddress(data.redirect_url, state.consent.service?.dashboard_login_url)
  return url ? [switchTo(state, 'leaving'), { do: 'leave', url }] : [switchTo(state, 'misdirected')]
}

/**
 * Shows the claim code, which the person gives to the tool, and polls for the outcome.
 * @param {State} state
 * @param {string | null} code null on a page that did not approve
 * @returns {Step}
 */
function onPending(state, code) {
  if (state.view === 'claiming' && state.busy !== null) return [state]
  const claiming = { ...state, view: /** @type {const} */ ('claiming'), busy: null, notice: null }
  return pollLater({ ...claiming, code: code ?? state.code }, 3)
}

/** @type {Record<'load' | 'approve' | 'decline', (state: State, problem: Problem) => Step>} */
const onFailure = {
  load(state, { kind, waitSeconds = 10, resolution }) {
    const hasEnded = kind === 'not_found' || kind === 'expired' || kind === 'resolved'
    if (state.view === 'review' && !(isUndecided(state) && hasEnded)) return [state]
    switch (kind) {
      case 'limited':
        return [
          { ...switchTo(state, 'limited'), waitSeconds },
          { do: 'wait', seconds: waitSeconds, event: { type: 'retry' } },
        ]
      case 'resolved':
        return [{ ...switchTo(state, resolution?.view ?? kind), kind: resolution?.kind ?? null }]
      case 'not_found':
      case 'expired':
      case 'offline':
        return [switchTo(state, kind)]
      default:
        return [switchTo(state, 'trouble')]
    }
  },

  approve(state, { kind, waitSeconds }) {
    if (state.view === 'claiming' && state.busy !== null) return [state]
    const isWorking = state.view === 'working' || state.view === 'claiming'
    switch (kind) {
      case 'in_progress':
        return pollLater({ ...state, view: 'working', busy: null, notice: null }, waitSeconds)
      case 'trouble':
      case 'offline':
        return isWorking
          ? pollLater({ ...state, notice: { kind } }, waitSeconds)
          : [review(state, { kind })]
      case 'limited':
        return isWorking
          ? pollLater(state, waitSeconds)
          : [review(state, waitSeconds ? { kind, waitSeconds } : { kind })]
      case 'resolved':
        // An approval in progress that was resolved without success can only have failed at the service.
        return state.view === 'working' ? [switchTo(state, 'failed')] : steps.reload(state)
      case 'token':
        return [
          { ...switchTo(state, 'loading'), notice: isWorking ? null : { kind: 'refreshed' } },
          { do: 'load' },
        ]
      case 'proof':
        if (state.refusedProofs > 0) return [review(state, { kind })]
        return steps.prove({ ...state, sealedToken: null, refusedProofs: 1 })
      case 'name_required':
        return [requireName(review(state, { kind }))]
      case 'flagged':
      case 'verdict':
        return [review(state, { kind })]
      default:
        return [switchTo(state, kind)]
    }
  },

  decline(state, { kind }) {
    switch (kind) {
      case 'expired':
      case 'not_found':
        return [switchTo(state, kind)]
      case 'resolved':
      case 'in_progress':
        return steps.reload(state)
      default:
        if (state.view === 'claiming')
          return pollLater({ ...state, busy: null, notice: { kind: 'trouble' } })
        return [review(state, { kind: kind === 'offline' ? kind : 'trouble' })]
    }
  },
}

/**
 * @param {State} state
 * @returns {State}
 */
function requireName(state) {
  return { ...state, consent: state.consent && { ...state.consent, name_required: true } }
}

/**
 * Polls for the outcome after a wait. The default applies if the server sent no Retry-After or can't be reached.
 * @param {State} state
 * @param {number} [seconds]
 * @returns {Step}
 */
function pollLater(state, seconds = 2) {
  return [state, { do: 'wait', seconds, event: { type: 'poll' } }]
}
