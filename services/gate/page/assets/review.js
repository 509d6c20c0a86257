import { countDown, durationText, localTime } from './countdown.js'
import { button, el } from './dom.js'
import { createNameField } from './name-check.js'
import { sections } from './sections.js'
import { initialState } from './state.js'
import { createVariableList } from './variables.js'

/** @import { NameField } from './name-check.js' */
/** @import { Consent, Notice, Part, PartOptions } from './state.js' */

// Approve works only after the page has been in front this long, so that a double click on the link can't approve.
const settleMs = 700

/**
 * Renders the request, with the buttons Approve and Decline.
 * @param {Consent} consent
 * @param {PartOptions} options
 * @returns {Part}
 */
export function createReview(consent, { dispatch, clock, announce }) {
  const lifetime = new AbortController()
  const isSettled = watchFocus(lifetime.signal)
  const isUsed = watchInput(lifetime.signal)
  const nameField = createNameField(consent)
  const variables = createVariableList(consent)
  const notice = el('div', { class: 'notice note warn', role: 'alert' })
  const approveLabel = consent.kind === 'login' ? 'Approve login' : 'Approve'
  const approve = button(approveLabel, {
    id: 'approve',
    press: () => {
      const instruction = missingStep({ isSettled, isUsed, nameField })
      if (instruction) notice.replaceChildren(el('p', {}, instruction))
      else dispatch('approve', variables.accepted())
    },
  })
  const decline = button('Decline', {
    id: 'decline',
    kind: 'quiet',
    press: () => dispatch('decline'),
  })
  const timeLeft = el('span', { class: 'left', 'aria-hidden': 'true' })
  const endsAt = Date.parse(consent.expires_at)
  lifetime.signal.addEventListener(
    'abort',
    countDown(timeLeft, { endsAt, clock, announce, onEnd: () => dispatch('time_up') }),
  )
  let lastNotice = initialState.notice
  // True if the person would have to wait until after the request has expired, so Approve stays disabled.
  let isTooLate = false

  return {
    element: layout(consent, {
      approve,
      decline,
      notice,
      timeLeft,
      nameField: nameField?.element,
      variables: variables.element,
    }),
    stop: () => lifetime.abort(),
    show(state) {
      if (state.notice !== lastNotice) {
        lastNotice = state.notice
        isTooLate =
          lastNotice?.waitSeconds !== undefined && clock() + lastNotice.waitSeconds * 1000 >= endsAt
        notice.replaceChildren(...noticeElements(lastNotice, { isTooLate }))
      }
      setBusy(approve, state.busy === 'approve', approveLabel)
      setBusy(decline, state.busy === 'decline', 'Decline')
      const blocked = state.busy !== null
      decline.setAttribute('aria-disabled', String(blocked))
      approve.setAttribute('aria-disabled', String(blocked || isTooLate))
      if (state.busy) announce(state.busy === 'approve' ? 'Approving.' : 'Declining.')
    },
  }
}

/**
 * @param {Consent} consent
 * @param {Record<'approve' | 'decline' | 'notice' | 'timeLeft', HTMLElement>
 *   & { nameField?: HTMLElement | undefined, variables: HTMLElement | null }} parts
 */
function layout(consent, { approve, decline, notice, timeLeft, nameField, variables }) {
  const endTime = localTime(Date.parse(consent.expires_at))
  return el(
    'div',
    { class: 'review' },
    sections.head(consent),
    sections.started(consent),
    sections.grants(consent),
    variables,
    sections.description(consent),
    sections.asciiArt(consent),
    sections.metadata(consent),
    sections.requester(consent),
    nameField,
    sections.legal(consent),
    el(
      'section',
      { class: 'decide', 'aria-label': 'Your decision' },
      notice,
      el('div', { class: 'actions' }, decline, approve),
      el('p', { class: 'time hint' }, `Open until ${endTime}`, timeLeft),
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
 * Returns a function that tells if this page has been in front long enough.
 * @param {AbortSignal} signal
 */
function watchFocus(signal) {
  let frontSince = performance.now()
  const restart = () => {
    frontSince = performance.now()
  }
  addEventListener('focus', restart, { signal })
  document.addEventListener('visibilitychange', restart, { signal })
  return () => performance.now() - frontSince >= settleMs
}

const tooLate =
  'This request can no longer be approved from here. Decline it and start again in your tool.'

/** @type {Record<Notice['kind'], { title: string, text?: string }>} */
const noticeTexts = {
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
  name_required: {
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
 * Returns the message above the buttons, shown if the last attempt did not end the request.
 * @param {Notice | null} notice
 * @param {{ isTooLate: boolean }} options `isTooLate`: the person would have to wait until after the request has expired
 */
function noticeElements(notice, { isTooLate }) {
  if (!notice) return []
  const wait = `Press Approve again in ${durationText(notice.waitSeconds ?? 60)}.`
  const { title, text } = noticeTexts[notice.kind]
  return [el('p', {}, el('b', {}, title)), el('p', {}, text ?? (isTooLate ? tooLate : wait))]
}

/**
 * Returns an instruction if the person has to do something before approving; otherwise undefined. Checked in the
 * browser, so that a premature click doesn't use up an attempt.
 * @param {{ isSettled: () => boolean, isUsed: () => boolean, nameField: NameField | null }} checks
 */
function missingStep({ isSettled, isUsed, nameField }) {
  if (!isSettled())
    return 'This page has only just come to the front. Press Approve again to confirm.'
  if (!isUsed()) return 'Nobody has used this page yet. A person must press Approve, not a program.'
  if (!nameField || nameField.isMatch()) return undefined
  nameField.focus()
  return 'First type the account name in the field above.'
}

/**
 * Returns a function that tells if a person has used a keyboard, mouse, touch screen or assistive technology on this
 * page. Events dispatched by scripts do not count.
 * @param {AbortSignal} signal
 */
function watchInput(signal) {
  let hasInput = false
  const listener = (/** @type {Event} */ event) => {
    hasInput ||= event.isTrusted
  }
  for (const type of ['keydown', 'pointerdown', 'touchstart', 'click'])
    addEventListener(type, listener, { capture: true, passive: true, signal })
  return () => hasInput
}
