import { loginAddress } from './text.js'

/**
 * A service as the public registry has it. What is in it is the service's own, and not to be trusted.
 * @typedef {{
 *   id: string, name: string, description: string, website: string, dashboard_login_url?: string,
 *   env_vars: { name: string, key: string, secret: boolean }[],
 *   branding?: Branding, consent?: { terms_url?: string, privacy_url?: string }, verified_domain?: string
 * }} Service
 * @typedef {{ key: string, name: string, secret: boolean, group: 'verified' | 'service' | 'other' | 'refused' }} Variable
 *   what the agent gets, and whose name it has
 * @typedef {{
 *   logo_url?: string, primary_color?: string, secondary_color?: string, ascii_art?: string, verified?: boolean
 * }} Branding
 *
 * @typedef {'not_found' | 'expired' | 'resolved' | 'in_progress' | 'flagged' | 'token' | 'proof' | 'verdict' | 'unnamed'
 *   | 'limited' | 'trouble' | 'offline'} ProblemKind
 * @typedef {{ view: 'approved' | 'declined' | 'closed' | 'failed' | 'unclaimed', kind: 'signup' | 'login' }} Ended
 * @typedef {{ kind: ProblemKind, after?: number, ended?: Ended }} Problem why a request of the page did not work.
 *   `after`: seconds until it may be sent again; `ended`: how the request ended, and what it was for
 * @typedef {{ status?: string, claim_code?: string, receipt_url?: string, redirect_url?: string | null }} Approved what is answered to an approval, as far as it matters here
 * @typedef {{
 *   gate_session_id: string, kind: 'signup' | 'login', status: 'pending',
 *   account_name: string, service: Service, approve_token: string, expires_at: string, confirmation_code: string,
 *   requested_by: { ip_address: string | null, user_agent: string | null, at: string, network?: Network },
 *   approval?: 'in_progress', claim?: 'waiting', metadata?: Record<string, unknown>, name_required?: boolean,
 *   variables?: Variable[]
 * }} Consent `name_required`: the server takes no approval without the account's name
 * @typedef {{ same: boolean | null, country: string | null, operator: string | null }} Network of the requester; `same`:
 *   whether this browser is in it
 * @typedef {'loading' | 'review' | 'claiming' | 'working' | 'approved' | 'leaving' | 'declined' | 'closed' | 'failed' | 'unclaimed' | 'expired'
 *   | 'resolved' | 'not_found' | 'limited' | 'trouble' | 'offline' | 'elsewhere' | 'misdirected'} View
 * @typedef {{ kind: 'flagged' | 'proof' | 'verdict' | 'unnamed' | 'limited' | 'trouble' | 'offline' | 'refreshed', after?: number }} Notice
 * @typedef {{
 *   view: View, consent: Consent | null, busy: 'approve' | 'decline' | null, notice: Notice | null,
 *   proofsRefused: number, sealedToken: string | null, accepted: string[], code: string | null, receipt: string | null, after: number | null, kind: 'signup' | 'login' | null
 * }} State
 * @typedef {{ type: 'opened' | 'retry' | 'returned' | 'decline' | 'declined' | 'no_proof' | 'ask_again'
 *     | 'time_up' | 'superseded' | 'released' | 'front' }
 *   | { type: 'approve', accepted?: string[] }
 *   | { type: 'loaded', consent: Consent, code?: string | null } | { type: 'approved', data: Approved } | { type: 'proved', sealedToken: string }
 *   | { type: 'not_loaded' | 'not_approved' | 'not_declined', problem: Problem }} Event
 * @typedef {{ do: 'load' | 'decline' } | { do: 'prove', approveToken: string }
 *   | { do: 'approve', body: ApproveBody }
 *   | { do: 'wait', seconds: number, event: Event } | { do: 'leave', url: string }} Effect
 * @typedef {{
 *   approve_token: string, sealed_token?: string, accepted_env_vars?: string[], account_name?: string
 * }} ApproveBody
 * @typedef {[State, ...Effect[]]} Step the next state, and what is to be done now
 *
 * One view on the page. `say`: reads a text aloud, for whoever does not see the page.
 * @typedef {{ show(state: State): void, element: HTMLElement, stop?: () => void }} Part
 * @typedef {{ happen: (type: 'approve' | 'decline' | 'retry' | 'time_up', accepted?: string[]) => void, clock: () => number,
 *   say: (text: string) => void }} PartOptions
 */

/** @type {State} */
export const initial = {
  view: 'loading',
  consent: null,
  busy: null,
  notice: null,
  proofsRefused: 0,
  sealedToken: null,
  code: null,
  receipt: null,
  accepted: [],
  after: null,
  kind: null,
}

/**
 * What follows from an event. An event that does not fit the state changes nothing.
 * @param {State} state
 * @param {Event} event
 * @returns {Step}
 */
export function next(state, event) {
  switch (event.type) {
    case 'opened':
    case 'returned':
      return steps.reload(state)
    case 'retry':
      return ['limited', 'trouble', 'offline', 'elsewhere'].includes(state.view)
        ? steps.reload(state)
        : [state]
    case 'loaded':
      return asks(state) ? loaded(state, event.consent, event.code ?? null) : [state]
    case 'not_loaded':
      return asks(state) ? failed.load(state, event.problem) : [state]
    case 'approve':
      return undecided(state)
        ? steps.prove({ ...begin(state, 'approve'), accepted: event.accepted ?? [] })
        : [state]
    case 'decline':
      return undecided(state) || (state.view === 'claiming' && state.busy === null)
        ? [begin(state, 'decline'), { do: 'decline' }]
        : [state]
    case 'proved':
      return steps.approve({ ...state, sealedToken: event.sealedToken })
    case 'no_proof':
      return [stay(state, { kind: 'proof' })]
    case 'ask_again':
      return state.view === 'working' || state.view === 'claiming' ? steps.approve(state) : [state]
    case 'approved':
      return approved(state, event.data)
    case 'not_approved':
      return failed.approve(state, event.problem)
    case 'declined':
      return [end(state, 'declined')]
    case 'not_declined':
      return failed.decline(state, event.problem)
    case 'time_up':
      return undecided(state) ? [end(state, 'expired')] : [state]
    case 'superseded':
      return undecided(state) ? [end(state, 'elsewhere')] : [state]
    case 'released':
      return state.view === 'elsewhere' ? steps.reload(state) : [state]
    case 'front':
      return steps.cameToFront(state)
  }
}

/**
 * Whether the person has still to decide: then closing the page is an answer, too.
 * @param {State} state
 */
export function undecided({ view, busy }) {
  return view === 'review' && busy === null
}

/**
 * Whether what the server says of the request still matters: not once it has ended here.
 * @param {State} state
 */
function asks({ view }) {
  return view === 'loading' || view === 'review' || view === 'elsewhere'
}

/**
 * @param {State} state
 * @param {View} view
 * @returns {State}
 */
function end(state, view) {
  return { ...state, view, busy: null, notice: null, sealedToken: null, after: null }
}

/**
 * The decision is still to be made; the notice says why.
 * @param {State} state
 * @param {Notice} notice
 * @returns {State}
 */
function stay(state, notice) {
  return { ...state, view: 'review', busy: null, sealedToken: null, notice }
}

/**
 * @param {State} state
 * @param {'approve' | 'decline'} busy
 * @returns {State}
 */
function begin(state, busy) {
  return { ...state, busy, notice: null, proofsRefused: 0 }
}

/** @type {Record<'reload' | 'cameToFront' | 'prove' | 'approve', (state: State) => Step>} */
const steps = {
  reload: (state) => [end(state, 'loading'), { do: 'load' }],

  // The page in front decides. One that has the request already stays as it is while it is loaded again.
  cameToFront(state) {
    if (state.view === 'elsewhere') return steps.reload(state)
    return undecided(state) ? [state, { do: 'load' }] : [state]
  },

  prove: (state) =>
    state.consent ? [state, { do: 'prove', approveToken: state.consent.approve_token }] : [state],

  approve(state) {
    const { consent, sealedToken, accepted } = state
    if (!consent) return [state]
    const lets = consent.kind === 'signup' && { accepted_env_vars: accepted }
    const proof = sealedToken === null ? {} : { sealed_token: sealedToken, ...lets }
    const name = asksForName(consent) ? { account_name: consent.account_name } : {}
    return [
      state,
      { do: 'approve', body: { approve_token: consent.approve_token, ...proof, ...name } },
    ]
  },
}

/**
 * Whether the person types the account's name: the agent is in another network, nobody knows in which, or the server
 * demands it.
 * @param {Consent} consent
 */
export function asksForName({ requested_by: { network }, name_required }) {
  return network?.same !== true || name_required === true
}

/**
 * @param {State} state
 * @param {Consent} data
 * @param {string | null} code that the page had before a reload
 * @returns {Step}
 */
function loaded(state, data, code) {
  const consent = state.consent?.name_required ? { ...data, name_required: true } : data
  if (state.view === 'review') {
    // A proof under way is for the token that was known when the button was pressed. What is new shows in the answer.
    if (!undecided(state)) return [state]
    if (consent.approval === undefined && consent.claim === undefined)
      return [{ ...state, consent }]
  }
  const known = { ...end(state, 'loading'), consent }
  // The proof was accepted already, so this finds out how it ended.
  if (consent.approval === 'in_progress') return steps.approve({ ...known, view: 'working' })
  if (consent.claim === 'waiting') return steps.approve({ ...known, view: 'claiming', code })
  return [
    { ...known, view: 'review', notice: state.notice?.kind === 'refreshed' ? state.notice : null },
  ]
}

/**
 * @param {State} state
 * @param {Approved} data
 * @returns {Step}
 */
function approved(state, data) {
  if (data.status === 'pending') return claiming(state, data.claim_code ?? null)
  if (state.consent?.kind !== 'login')
    return [{ ...end(state, 'approved'), receipt: data.receipt_url ?? null }]
  const url = loginAddress(data.redirect_url, state.consent.service?.dashboard_login_url)
  return url ? [end(state, 'leaving'), { do: 'leave', url }] : [end(state, 'misdirected')]
}

/**
 * The person passes the code to the tool. The page requests the outcome again and again, with the same proof.
 * @param {State} state
 * @param {string | null} code null for a page that has not approved
 * @returns {Step}
 */
function claiming(state, code) {
  if (state.view === 'claiming' && state.busy !== null) return [state]
  const next = { ...state, view: /** @type {const} */ ('claiming'), busy: null, notice: null }
  return askLater({ ...next, code: code ?? state.code }, 3)
}

/** @type {Record<'load' | 'approve' | 'decline', (state: State, problem: Problem) => Step>} */
const failed = {
  load(state, { kind, after = 10, ended }) {
    const hasEnded = kind === 'not_found' || kind === 'expired' || kind === 'resolved'
    if (state.view === 'review' && !(undecided(state) && hasEnded)) return [state]
    switch (kind) {
      case 'limited':
        return [
          { ...end(state, 'limited'), after },
          { do: 'wait', seconds: after, event: { type: 'retry' } },
        ]
      case 'resolved':
        return [{ ...end(state, ended?.view ?? kind), kind: ended?.kind ?? null }]
      case 'not_found':
      case 'expired':
      case 'offline':
        return [end(state, kind)]
      default:
        return [end(state, 'trouble')]
    }
  },

  approve(state, { kind, after }) {
    if (state.view === 'claiming' && state.busy !== null) return [state]
    const isWorking = state.view === 'working' || state.view === 'claiming'
    switch (kind) {
      case 'in_progress':
        return askLater({ ...state, view: 'working', busy: null, notice: null }, after)
      case 'trouble':
      case 'offline':
        return isWorking ? askLater({ ...state, notice: { kind } }, after) : [stay(state, { kind })]
      case 'limited':
        return isWorking
          ? askLater(state, after)
          : [stay(state, after ? { kind, after } : { kind })]
      case 'resolved':
        // After it was under way there is only one way in which it did not succeed.
        return state.view === 'working' ? [end(state, 'failed')] : steps.reload(state)
      case 'token':
        return [
          { ...end(state, 'loading'), notice: isWorking ? null : { kind: 'refreshed' } },
          { do: 'load' },
        ]
      case 'proof':
        if (state.proofsRefused > 0) return [stay(state, { kind })]
        return steps.prove({ ...state, sealedToken: null, proofsRefused: 1 })
      case 'unnamed':
        return [unnamed(stay(state, { kind }))]
      case 'flagged':
      case 'verdict':
        return [stay(state, { kind })]
      default:
        return [end(state, kind)]
    }
  },

  decline(state, { kind }) {
    switch (kind) {
      case 'expired':
      case 'not_found':
        return [end(state, kind)]
      case 'resolved':
      case 'in_progress':
        return steps.reload(state)
      default:
        if (state.view === 'claiming')
          return askLater({ ...state, busy: null, notice: { kind: 'trouble' } })
        return [stay(state, { kind: kind === 'offline' ? kind : 'trouble' })]
    }
  },
}

/**
 * @param {State} state
 * @returns {State}
 */
function unnamed(state) {
  return { ...state, consent: state.consent && { ...state.consent, name_required: true } }
}

/**
 * Asks again in 2 seconds where the server names no time, or cannot be reached.
 * @param {State} state
 * @param {number} [seconds]
 * @returns {Step}
 */
function askLater(state, seconds = 2) {
  return [state, { do: 'wait', seconds, event: { type: 'ask_again' } }]
}
