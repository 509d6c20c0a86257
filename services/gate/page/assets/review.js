import { clockTime, countDown } from './countdown.js'
import { button, el } from './dom.js'
import { noticeOf, pressAgain } from './notices.js'
import {
  asciiArt,
  codeSection,
  grantsSection,
  legalLinks,
  metadataSection,
  requesterSection,
  serviceHead,
} from './sections.js'

/**
 * @typedef {import('./state.js').State} State
 * @typedef {import('./state.js').Consent} Consent
 * @typedef {import('./view.js').ViewOptions & { say: (text: string) => void }} ReviewOptions
 */

/** Milliseconds that the page is in front before Approve works: half a double click elsewhere is no consent. */
const settleMs = 700

/**
 * The request itself, with the two buttons.
 * @param {Consent} consent
 * @param {ReviewOptions} options
 */
export function createReview(consent, { happen, clock, say }) {
  const closing = new AbortController()
  const settled = followFocus(closing.signal)
  const notice = el('div', { class: 'notice', role: 'alert' })
  const approve = button(approveText(consent), {
    id: 'approve',
    press: () => (settled() ? happen('approve') : notice.replaceChildren(...pressAgain())),
  })
  const decline = button('Decline', { id: 'decline', kind: 'quiet', press: () => happen('decline') })
  const left = el('span', { class: 'left', 'aria-hidden': 'true' })
  const endsAt = Date.parse(consent.expires_at)
  closing.signal.addEventListener(
    'abort',
    countDown(left, { endsAt, clock, say, end: () => happen('time_up') }),
  )
  /** @type {State['notice']} */
  let noticed = null
  // Approve is of no use any more: the wait is longer than the request is open.
  let lasting = false

  /** @param {State['notice']} given */
  function warn(given) {
    noticed = given
    lasting = given?.after !== undefined && clock() + given.after * 1000 >= endsAt
    notice.replaceChildren(...noticeOf(given, { lasting }))
  }

  return {
    element: layout(consent, { approve, decline, notice, left }),
    stop: () => closing.abort(),
    /** @param {State} state */
    show(state) {
      if (state.notice !== noticed) warn(state.notice)
      setBusy(approve, state.busy === 'approve', approveText(consent))
      setBusy(decline, state.busy === 'decline', 'Decline')
      const blocked = state.busy !== null
      decline.setAttribute('aria-disabled', String(blocked))
      approve.setAttribute('aria-disabled', String(blocked || lasting))
      if (state.busy) say(state.busy === 'approve' ? 'Approving.' : 'Declining.')
    },
  }
}

/**
 * @param {Consent} consent
 * @param {Record<'approve' | 'decline' | 'notice' | 'left', HTMLElement>} parts
 */
function layout(consent, { approve, decline, notice, left }) {
  const ends = clockTime(Date.parse(consent.expires_at))
  return el(
    'div',
    { class: 'review' },
    serviceHead(consent),
    asciiArt(consent.service),
    codeSection(consent),
    grantsSection(consent),
    metadataSection(consent),
    requesterSection(consent),
    legalLinks(consent.service),
    el(
      'section',
      { class: 'decide', 'aria-label': 'Your decision' },
      notice,
      el('div', { class: 'actions' }, decline, approve),
      el('p', { class: 'time' }, `Open until ${ends}`, left),
    ),
  )
}

/**
 * @param {HTMLElement} element
 * @param {boolean} busy
 * @param {string} text
 */
function setBusy(element, busy, text) {
  element.classList.toggle('busy', busy)
  const shown = busy ? (element.id === 'approve' ? 'Approving…' : 'Declining…') : text
  if (element.textContent !== shown) element.textContent = shown
}

/** @param {Consent} consent */
function approveText({ kind }) {
  return kind === 'login' ? 'Approve login' : 'Approve'
}

/**
 * Whether this page has been in front for long enough, as a question.
 * @param {AbortSignal} signal
 */
function followFocus(signal) {
  let since = performance.now()
  const restart = () => {
    since = performance.now()
  }
  addEventListener('focus', restart, { signal })
  document.addEventListener('visibilitychange', restart, { signal })
  return () => performance.now() - since >= settleMs
}
