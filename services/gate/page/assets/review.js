import { clockTime, countDown, spoken } from './countdown.js'
import { button, el } from './dom.js'
import { askForName } from './name-check.js'
import { sections } from './sections.js'
import { initial } from './state.js'
import { askForVariables } from './variables.js'

/** @import { NameCheck } from './name-check.js' */
/** @import { Consent, Notice, Part, PartOptions } from './state.js' */

// How long the page is in front before Approve works: half a double click elsewhere is no consent.
const settleMs = 700

/**
 * The request itself, with the two buttons.
 * @param {Consent} consent
 * @param {PartOptions} options
 * @returns {Part}
 */
export function createReview(consent, { happen, clock, say }) {
  const closing = new AbortController()
  const settled = followFocus(closing.signal)
  const used = followInput(closing.signal)
  const name = askForName(consent)
  const variables = askForVariables(consent)
  const notice = el('div', { class: 'notice', role: 'alert' })
  const approveText = consent.kind === 'login' ? 'Approve login' : 'Approve'
  const approve = button(approveText, {
    id: 'approve',
    press: () => {
      const missing = missingStep({ settled, used, name })
      if (missing) notice.replaceChildren(el('p', {}, missing))
      else happen('approve', variables.accepted())
    },
  })
  const decline = button('Decline', {
    id: 'decline',
    kind: 'secondary',
    press: () => happen('decline'),
  })
  const left = el('span', { class: 'left', 'aria-hidden': 'true' })
  const endsAt = Date.parse(consent.expires_at)
  closing.signal.addEventListener(
    'abort',
    countDown(left, { endsAt, clock, say, end: () => happen('time_up') }),
  )
  let noticed = initial.notice
  // Approve is of no use any more: the wait is longer than the request is open.
  let lasting = false

  return {
    element: layout(consent, {
      approve,
      decline,
      notice,
      left,
      name: name?.element,
      variables: variables.element,
    }),
    stop: () => closing.abort(),
    show(state) {
      if (state.notice !== noticed) {
        noticed = state.notice
        lasting = noticed?.after !== undefined && clock() + noticed.after * 1000 >= endsAt
        notice.replaceChildren(...noticeOf(noticed, { lasting }))
      }
      setBusy(approve, state.busy === 'approve', approveText)
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
 * @param {Record<'approve' | 'decline' | 'notice' | 'left', HTMLElement>
 *   & { name?: HTMLElement | undefined, variables: HTMLElement | null }} parts
 */
function layout(consent, { approve, decline, notice, left, name, variables }) {
  const ends = clockTime(Date.parse(consent.expires_at))
  return el(
    'div',
    { class: 'review' },
    sections.head(consent),
    sections.started(consent),
    sections.grants(consent),
    variables,
    sections.says(consent),
    sections.drawing(consent),
    sections.metadata(consent),
    sections.requester(consent),
    name,
    sections.legal(consent),
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
  const label = busy ? (element.id === 'approve' ? 'Approving…' : 'Declining…') : text
  if (element.textContent !== label) element.textContent = label
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

const tooLate =
  'This request can no longer be approved from here. Decline it and start again in your tool.'

/** @type {Record<Notice['kind'], { title: string, text?: string }>} */
const texts = {
  flagged: {
    title: 'This looked automated, so it was not approved.',
    text: 'A person must approve. Use your everyday browser without remote control, automation or emulation, use the page by hand, and press Approve again. You have three attempts in all; if none works, decline.',
  },
  proof: {
    title: 'We could not confirm that a person is here.',
    text: 'An extension may be blocking scripts. Allow this page, then press Approve again.',
  },
  verdict: {
    title: 'This service accepts approvals only from people.',
    text: 'We could not confirm that a person is using this browser. Use your everyday browser without extensions or remote control, and press Approve again.',
  },
  unnamed: {
    title: 'Type the account name as well.',
    text: 'We could not confirm that a person is using this browser. Type the name in the field above, then press Approve again.',
  },
  refreshed: {
    title: 'This request was also opened somewhere else.',
    text: 'The page was reloaded, and nothing was approved. Check it again, then decide.',
  },
  trouble: {
    title: 'That did not work.',
    text: 'Something went wrong on our side. You can press again; your decision counts only once.',
  },
  offline: {
    title: 'The connection was lost.',
    text: 'Your decision may not have arrived. You can press again; it counts only once.',
  },
  limited: { title: 'Too many attempts.' },
}

/**
 * What stands above the buttons when the last try did not end the request.
 * @param {Notice | null} notice
 * @param {{ lasting: boolean }} options whether the wait is longer than the request is open
 */
function noticeOf(notice, { lasting }) {
  if (!notice) return []
  const wait = `Press Approve again in ${spoken(notice.after ?? 60)}.`
  const { title, text } = texts[notice.kind]
  return [
    el('p', { class: 'notice-title' }, title),
    el('p', {}, text ?? (lasting ? tooLate : wait)),
  ]
}

/**
 * What a person has still to do before Approve means something, said before an attempt is spent on it.
 * @param {{ settled: () => boolean, used: () => boolean, name: NameCheck | null }} checks
 */
function missingStep({ settled, used, name }) {
  if (!settled())
    return 'This page has only just come to the front. Press Approve again to confirm.'
  if (!used()) return 'Nobody has used this page yet. A person must press Approve, not a program.'
  if (!name || name.fits()) return undefined
  name.focus()
  return 'First type the account name in the field above.'
}

/**
 * Whether a pointer, finger or key was used on this page, or whatever helps a person to press a button, as a question.
 * A script's events do not count.
 * @param {AbortSignal} signal
 */
function followInput(signal) {
  let seen = false
  const listener = (/** @type {Event} */ event) => {
    seen ||= event.isTrusted
  }
  for (const type of ['keydown', 'pointerdown', 'touchstart', 'click'])
    addEventListener(type, listener, { capture: true, passive: true, signal })
  return () => seen
}
