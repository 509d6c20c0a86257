import { el } from './dom.js'
import { needsAccountName } from './state.js'
import { singleLine } from './text.js'

/** @import { Consent } from './state.js' */

/** @typedef {{ element: HTMLElement, isMatch: () => boolean, focus: () => void }} NameField */

/**
 * Returns the field in which a person must type the account name before approving; null if the name is not needed.
 * @param {Consent} consent
 * @returns {NameField | null}
 */
export function createNameField(consent) {
  if (!needsAccountName(consent)) return null
  const isSameNetwork = consent.requested_by.network?.same === true
  const name = singleLine(consent.account_name, 100)
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
  const unconfirmed = isSameNetwork
    ? el('p', { id: 'elsewhere' }, 'We could not confirm that a person is using this browser.')
    : null
  return {
    element: el('div', { class: 'elsewhere' }, unconfirmed, label, input),
    isMatch: () => normalizeName(input.value) === normalizeName(name),
    focus: () => input.focus(),
  }
}

/** @param {string} text */
function normalizeName(text) {
  return text.normalize('NFKC').replaceAll(/\s+/g, ' ').trim().toLowerCase()
}
