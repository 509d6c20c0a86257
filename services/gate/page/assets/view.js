import { createOutcome } from './outcome.js'
import { createReview } from './review.js'
import { line } from './text.js'

/** @import { Part, PartOptions, State } from './state.js' */

/**
 * What the person sees of a state. A change of view moves the focus to its heading; within one nothing moves.
 * @param {Omit<PartOptions, 'say'>} options
 * @returns {{ show: (state: State) => void }}
 */
export function createView(options) {
  const main = elementOf('main')
  const status = elementOf('status')
  /** @type {PartOptions['say']} */
  const say = (text) => {
    status.textContent = text
  }
  /** @type {{ state: State, part: Part } | undefined} */
  let current
  elementOf('host').textContent = location.host

  return {
    show(state) {
      const { part } =
        current && isSame(current.state, state) ? current : { part: replaceBy(state) }
      part.show(state)
      current = { state, part }
    },
  }

  /** @param {State} state */
  function replaceBy(state) {
    current?.part.stop?.()
    const part =
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
    return part
  }
}

/** @param {string} id of an element of consent.html */
const elementOf = (id) => /** @type {HTMLElement} */ (document.getElementById(id))

/** @param {State[]} states two, compared without the token, since each load has another */
function isSame(...states) {
  const [one, other] = states.map(({ view, after, code, consent }) =>
    JSON.stringify([view, after, code, consent && { ...consent, approve_token: '' }]),
  )
  return one === other
}
