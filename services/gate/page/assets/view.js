import { createOutcome } from './outcome.js'
import { createReview } from './review.js'
import { singleLine } from './text.js'

/** @import { Part, PartOptions, State } from './state.js' */

/**
 * Renders states. A new view moves the focus to its heading; an update of the same view does not.
 * @param {Omit<PartOptions, 'announce'>} options
 * @returns {{ show: (state: State) => void }}
 */
export function createView(options) {
  const main = elementById('main')
  const status = elementById('status')
  /** @type {PartOptions['announce']} */
  const announce = (text) => {
    status.textContent = text
  }
  /** @type {{ state: State, part: Part } | undefined} */
  let current
  elementById('host').textContent = location.host

  return {
    show(state) {
      const { part } =
        current && isSameView(current.state, state) ? current : { part: replacePart(state) }
      part.show(state)
      current = { state, part }
    },
  }

  /** @param {State} state */
  function replacePart(state) {
    current?.part.stop?.()
    const part =
      state.view === 'review' && state.consent
        ? createReview(state.consent, { ...options, announce })
        : createOutcome(state, { ...options, announce })
    main.replaceChildren(part.element)
    main.dataset.view = state.view
    main.setAttribute('aria-busy', String(state.view === 'loading'))
    announce('')
    const heading = main.querySelector('h1')
    document.title = `${singleLine(heading?.textContent, 80)} · Tidegate`
    scrollTo({ top: 0 })
    if (state.view !== 'loading') heading?.focus({ preventScroll: true })
    return part
  }
}

/** @param {string} id of an element in consent.html */
const elementById = (id) => /** @type {HTMLElement} */ (document.getElementById(id))

/** @param {State[]} states two; approve tokens are ignored, because each load returns a new one */
function isSameView(...states) {
  const [previous, current] = states.map(({ view, waitSeconds, code, consent }) =>
    JSON.stringify([view, waitSeconds, code, consent && { ...consent, approve_token: '' }]),
  )
  return previous === current
}
