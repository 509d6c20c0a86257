import { el } from './dom.js'
import { asksForName } from './state.js'
import { line } from './text.js'

/** @import { Consent } from './state.js' */

/** @typedef {{ element: HTMLElement, fits: () => boolean, focus: () => void }} NameCheck */

/**
 * The deliberate step before a request is approved that came from another network, or from nobody knows where: the
 * name of the account is typed. null where the agent is in the network of this browser, and the server does not ask.
 * @param {Consent} consent
 * @returns {NameCheck | null}
 */
export function askForName(consent) {
  if (!asksForName(consent)) return null
  const { account_name, requested_by } = consent
  const { network } = requested_by
  const isHere = network?.same === true
  const name = line(account_name, 100)
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
  const label = el('label', { for: 'account-name' }, 'To approve, type the account’s name: ')
  label.append(el('bdi', { class: 'foreign' }, el('strong', {}, name)))
  const element = el(
    'div',
    { class: 'elsewhere' },
    isHere ? el('p', { id: 'elsewhere' }, unsure) : null,
    label,
    input,
  )
  return {
    element,
    fits: () => comparable(input.value) === comparable(name),
    focus: () => input.focus(),
  }
}

const unsure = 'It is not clear that a person uses this browser.'

/** @param {string} text */
function comparable(text) {
  return text.normalize('NFKC').replaceAll(/\s+/g, ' ').trim().toLowerCase()
}
