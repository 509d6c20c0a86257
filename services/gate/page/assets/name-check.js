import { el } from './dom.js'
import { originOf } from './sections.js'
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
    'section',
    { class: 'elsewhere', 'aria-labelledby': 'elsewhere-title' },
    el(
      'h2',
      { id: 'elsewhere-title' },
      isHere ? 'The account’s name' : 'This did not come from your network',
    ),
    el('p', { id: 'elsewhere' }, isHere ? unsure : whence(network)),
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

/** @param {Consent['requested_by']['network']} network */
function whence(network) {
  if (network?.same !== false) return 'The server does not know from where it was asked for.'
  const origin = originOf(network)
  const from = `It was asked for from another network than the one this browser is in${origin && `: ${origin}`}.`
  return `${from} A tool that runs in the cloud does that, and so does somebody who sends you a link.`
}

/** @param {string} text */
function comparable(text) {
  return text.normalize('NFKC').replaceAll(/\s+/g, ' ').trim().toLowerCase()
}
