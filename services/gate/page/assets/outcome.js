import { durationText, localTime } from './countdown.js'
import { button, el, icon, icons } from './dom.js'
import { accountNoun } from './sections.js'
import { singleLine, webAddress } from './text.js'

/** @import { Part, PartOptions, State, View } from './state.js' */

/**
 * @typedef {{ name: string, account: string, noun: string, kind: string, waitSeconds: number, code: string | null }} Values
 * @typedef {{ icon: keyof typeof icons, tone: 'good' | 'bad' | 'plain' | 'busy', title: (values: Values) => string,
 *   text: (values: Values) => string[], retry?: string }} Outcome
 */

/**
 * Returns an outcome with fixed texts.
 * @param {Outcome['icon']} icon
 * @param {Outcome['tone']} tone
 * @param {string} title
 * @param {...string} text
 * @returns {Outcome}
 */
const fixed = (icon, tone, title, ...text) => ({ icon, tone, title: () => title, text: () => text })

/** @type {Record<Exclude<View, 'review'>, Outcome>} */
const outcomes = {
  loading: fixed('tide', 'busy', 'Opening the request'),
  claiming: {
    icon: 'clock',
    tone: 'plain',
    title: ({ code }) =>
      code ? 'Give this code to your tool' : 'Your tool is waiting for the code',
    text: ({ code, name }) =>
      code
        ? [
            `You approved. ${name} creates the account once your tool has this code: type it where you started, or give it to your agent.`,
            'Do not give it to anybody else. Somebody who sent you this link and asks for the code would get what you approved.',
          ]
        : [
            'This was approved on another page, which shows the code. If that page is gone, cancel and start again in your tool.',
          ],
  },
  working: {
    icon: 'tide',
    tone: 'busy',
    title: ({ name }) => `${name} is setting up the account`,
    text: () => [
      'You approved. This usually takes a few seconds.',
      'You can close this page; the setup continues without it.',
    ],
  },
  approved: {
    icon: 'check',
    tone: 'good',
    title: ({ kind, account }) =>
      kind === 'login'
        ? 'This login was approved'
        : account
          ? 'Approved'
          : 'This sign-up was approved',
    text: ({ kind, name, account, noun }) => {
      if (kind === 'login')
        return ['If the dashboard did not open, ask your agent for another login.']
      if (!account)
        return ['Your agent has its credentials or can fetch them now. You can close this page.']
      return [
        `${name} created the ${noun} ${account}.`,
        'Your agent can fetch its credentials now. You can close this page.',
      ]
    },
  },
  leaving: {
    icon: 'check',
    tone: 'good',
    title: ({ name }) => `Opening ${name}’s dashboard`,
    text: () => ['You approved the login.'],
  },
  declined: fixed(
    'cross',
    'plain',
    'Declined',
    'Nothing was created or shared. You can close this page.',
  ),
  closed: fixed(
    'closed',
    'plain',
    'This request was closed',
    'The page was closed before a decision, so nothing was created. Start again in your tool.',
  ),
  failed: {
    icon: 'alert',
    tone: 'bad',
    title: ({ name }) => `${name} could not finish`,
    text: () => [
      'You approved, but the service did not finish creating the account. No credentials were delivered.',
      'Start again in your tool, or contact the service.',
    ],
  },
  misdirected: {
    icon: 'alert',
    tone: 'bad',
    title: () => 'This login points to another site',
    text: ({ name }) => [
      `The address to continue to is not ${name}’s dashboard, so this page does not open it.`,
      'Please report this to the service.',
    ],
  },
  unclaimed: fixed(
    'alert',
    'bad',
    'The code was wrong five times',
    'Nothing was created or shared. Start again in your tool.',
    'If you did not give the code to anybody, somebody else was trying to get this account.',
  ),
  expired: fixed(
    'clock',
    'plain',
    'This request has expired',
    'Requests expire after 15 minutes, and nothing was approved here in time. Start again in your tool.',
  ),
  resolved: fixed(
    'ended',
    'plain',
    'This request was already decided',
    'There is nothing left to decide. You can close this page.',
  ),
  not_found: fixed(
    'alert',
    'plain',
    'Request not found',
    'The address may be incomplete. Open it again from your tool.',
  ),
  limited: {
    icon: 'clock',
    tone: 'plain',
    title: () => 'One moment, please',
    text: ({ waitSeconds }) => [
      `Too many pages were opened from your network. This page tries again in ${durationText(waitSeconds)}.`,
    ],
    retry: 'Try now',
  },
  trouble: {
    ...fixed(
      'alert',
      'bad',
      'Something went wrong on our side',
      'The request could not be loaded. Nothing was decided.',
    ),
    retry: 'Try again',
  },
  offline: {
    ...fixed(
      'alert',
      'plain',
      'No connection',
      'This page cannot reach the server. Nothing was decided.',
    ),
    retry: 'Try again',
  },
  elsewhere: {
    ...fixed(
      'tabs',
      'plain',
      'Open in another tab',
      'You opened this request in another tab. Decide there, or continue here.',
    ),
    retry: 'Continue here',
  },
}

/** @param {string} address */
function receiptLink(address) {
  const url = webAddress(address)
  // Link only to this server.
  const isOurs = url?.origin === location.origin
  const link = el(
    'a',
    { href: isOurs ? url.href : '#', id: 'receipt' },
    'Delete the record of who approved',
  )
  return el(
    'p',
    { class: 'receipt' },
    link,
    ' at any time with this link. Save it: we cannot show it again.',
  )
}

/** @param {string | null} code */
function claimCode(code) {
  if (!code) return null
  const label = `Code: ${[...code.replaceAll(' ', '')].join(' ')}`
  return el('p', { class: 'digits claim', role: 'img', 'aria-label': label }, code)
}

// Services usually respond within a few seconds.
const slowAfterMs = 20_000

/**
 * Renders a state without a decision to make.
 * @param {State} state
 * @param {PartOptions} options
 * @returns {Part}
 */
export function createOutcome(state, { dispatch, clock, announce }) {
  const { view, consent, waitSeconds, code } = state
  const outcome = outcomes[view === 'review' ? 'loading' : view]
  const values = {
    name: singleLine(consent?.service?.name, 60) || 'The service',
    account: singleLine(consent?.account_name, 100),
    noun: accountNoun(consent?.service),
    kind: consent?.kind ?? state.kind ?? 'signup',
    waitSeconds: waitSeconds ?? 0,
    code,
  }
  const element = el(
    'div',
    { class: 'outcome' },
    el('span', { class: `seal badge ${outcome.tone}` }, icon(icons[outcome.icon], outcome.icon)),
    el('h1', { tabindex: -1 }, outcome.title(values)),
    view === 'claiming' ? claimCode(code) : null,
    ...outcome.text(values).map((text) => el('p', {}, text)),
    state.receipt ? receiptLink(state.receipt) : null,
  )
  const connectionNote = el('p', { class: 'aside', role: 'status' })
  if (view === 'working' || view === 'claiming') element.append(connectionNote)
  const cancel = button('Cancel', {
    id: 'decline',
    kind: 'quiet',
    press: () => dispatch('decline'),
  })
  if (view === 'claiming') element.append(cancel)
  const timer = view === 'working' ? setTimeout(showSlow, slowAfterMs) : 0
  if (outcome.retry)
    element.append(
      button(outcome.retry, { id: 'again', kind: 'quiet', press: () => dispatch('retry') }),
    )

  function showSlow() {
    const intro = element.querySelector('p')
    const endsAt = Date.parse(consent?.expires_at ?? '')
    const until = endsAt > clock() ? `; retrying until ${localTime(endsAt)}` : ''
    if (intro) intro.textContent = `You approved. ${values.name} is slow to respond${until}.`
    announce(intro?.textContent ?? '')
  }

  return {
    element,
    stop: () => clearTimeout(timer),
    show({ notice, busy }) {
      cancel.setAttribute('aria-disabled', String(busy !== null))
      connectionNote.textContent = notice
        ? 'The connection was interrupted; still checking for the outcome.'
        : ''
    },
  }
}
