import { spoken } from './countdown.js'
import { el } from './dom.js'

/** @typedef {import('./state.js').Notice} Notice */

/** @type {Record<Exclude<Notice['kind'], 'limited'>, { title: string, text: string }>} */
const texts = {
  flagged: {
    title: 'This looked automated, so it was not approved.',
    text: 'A person has to approve. Use your everyday browser without remote control, automation or emulation, move through the page by hand, and press Approve again. There are three attempts in all; if none works, decline.',
  },
  proof: {
    title: 'We could not tell whether a person is here.',
    text: 'An extension that blocks scripts may be in the way. Allow this page, then press Approve again.',
  },
  refreshed: {
    title: 'This request was opened somewhere else, too.',
    text: 'The page was renewed. Nothing was approved: look at it once more, then decide.',
  },
  trouble: {
    title: 'That did not go through.',
    text: 'Something went wrong on our side. You can press again; an answer counts only once.',
  },
  offline: {
    title: 'The connection was lost.',
    text: 'Your answer may not have arrived. You can press again; an answer counts only once.',
  },
}

/**
 * What stands above the buttons when the last try did not end the request.
 * @param {Notice | null} notice
 * @param {{ lasting: boolean }} options whether the wait is longer than the request is open
 */
export function noticeOf(notice, { lasting }) {
  if (!notice) return []
  const { title, text } =
    notice.kind === 'limited' ? limited(notice.after ?? 60, lasting) : texts[notice.kind]
  return [el('p', { class: 'notice-title' }, title), el('p', {}, text)]
}

/** For a press at the moment in which the page came to the front. */
export function pressAgain() {
  return [el('p', {}, 'This page has only just come to the front. To approve, press once more.')]
}

/**
 * @param {number} seconds
 * @param {boolean} lasting
 */
function limited(seconds, lasting) {
  const title = 'Too many attempts.'
  return lasting
    ? {
        title,
        text: 'This request cannot be approved from here any more. Decline it, and start again where you began.',
      }
    : { title, text: `Press Approve again in ${spoken(seconds)}.` }
}
