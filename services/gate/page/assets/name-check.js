import { el } from './dom.js'
import { asksForName } from './state.js'
import { line } from './text.js'

/** @import { Consent } from './state.js' */

/** @typedef {{ element: HTMLElement, fits: () => boolean, focus: () => void }} NameCheck */

/**
 * The field for the name of the account, which a person types before a request is approved that came from another
 * network, or from nobody knows where. null where the agent is in this browser's network, and the server needs no name.
 * @param {Consent} consent
 * @returns {NameCheck | null}
 */
export function askForName(consent) {
  if (!asksForName(consent)) return null
  const isHere = consent.requested_by.network?.same === true
  const name = line(consent.account_name, 100)
  const input = /** @type {HTMLInputElement} */ (
    el('input', {
      id: 'account-name',
      type: 'text',
      autocomplete: 'off',
      autocapitalize: 'off',
      spellcheck: 'false',
      dir: 'auto',
      maxlength: 400,
      'aria-describedby': 'elsewhere',
    })
  )
  const nameBox = el('bdi', { class: 'foreign' }, el('strong', {}, name))
  const label = el('label', { for: 'account-name' }, 'To approve, type the account name: ', nameBox)
  const unsure = isHere
    ? el('p', { id: 'elsewhere' }, 'We could not confirm that a person is using this browser.')
    : null
  return {
    element: el('div', { class: 'elsewhere' }, unsure, label, input),
    fits: () => comparable(input.value) === comparable(name),
    focus: () => input.focus(),
  }
}

/** @param {string} text */
function comparable(text) {
  return text.normalize('NFKC').replaceAll(/\s+/g, ' ').trim().toLowerCase()
}
