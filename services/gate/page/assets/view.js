import { createOutcome } from './outcome.js'
import { createReview } from './review.js'
import { line } from './text.js'

/**
 * @typedef {import('./state.js').State} State
 * @typedef {{ show(state: State): void, element: DocumentFragment | HTMLElement, stop?: () => void }} Part
 * @typedef {{ happen: (type: 'approve' | 'decline' | 'retry' | 'time_up') => void, clock: () => number }} ViewOptions
 */

/**
 * What the person sees of a state. A change of view moves the focus to its heading; within one nothing moves.
 * @param {ViewOptions} options
 */
export function createView(options) {
  const main = /** @type {HTMLElement} */ (document.querySelector('#main'))
  const status = /** @type {HTMLElement} */ (document.querySelector('#status'))
  const host = /** @type {HTMLElement} */ (document.querySelector('#host'))
  /** @type {State | undefined} */
  let shown
  /** @type {Part | undefined} */
  let part
  const say = (/** @type {string} */ text) => {
    status.textContent = text
  }
  host.textContent = location.host

  return {
    /** @param {State} state */
    show(state) {
      if (!isSame(shown, state)) replace(state)
      part?.show(state)
      shown = state
    },
  }

  /** @param {State} state */
  function replace(state) {
    part?.stop?.()
    part =
      state.view === 'review' && state.consent
        ? createReview(state.consent, { ...options, say })
        : createOutcome(state, { ...options, say })
    main.replaceChildren(part.element)
    main.dataset.view = state.view
    main.setAttribute('aria-busy', String(state.view === 'loading'))
    say('')
    const heading = main.querySelector('h1')
    document.title = `${line(heading?.textContent, 80)} · Tidegate`
    scrollTo({ top: 0 })
    if (state.view !== 'loading') heading?.focus({ preventScroll: true })
  }
}

/**
 * @param {State | undefined} shown
 * @param {State} state
 */
function isSame(shown, state) {
  return shown?.view === state.view && shown.after === state.after && asked(shown) === asked(state)
}

/**
 * What the person sees of the request: not the token, which is another each time.
 * @param {State} state
 */
function asked({ consent }) {
  return consent && JSON.stringify({ ...consent, approve_token: '' })
}
