import { el } from './dom.js'
import { line } from './text.js'

/** @import { Consent, Variable } from './state.js' */

/** @typedef {{ element: HTMLElement | null, accepted: () => string[] }} Variables */

/** @type {Partial<Record<Variable['group'], (website: string) => { id: string, label: string, why: string }>>} */
const questions = {
  service: (website) => ({
    id: 'let-own',
    label: 'Write these to my tool’s environment file',
    why: `Their names start with the id of this service, but nobody has verified that it owns ${website}. If you leave this unchecked, they go to a separate file.`,
  }),
  other: () => ({
    id: 'let-others',
    label: 'Also write these to my tool’s environment file',
    why: 'Their names do not match a verified name of this service, so other programs may read them. If you leave this unchecked, they go to a separate file.',
  }),
}

/**
 * What the agent gets. What is not of a verified name goes into the tool's environment file only where the person says so.
 * @param {Consent} consent
 * @returns {Variables}
 */
export function askForVariables({ variables = [], service }) {
  const website = line(service.website, 120)
  const groups = /** @type {const} */ (['verified', 'service', 'other', 'refused']).flatMap(
    (group) => {
      const members = variables.filter((variable) => variable.group === group)
      return members.length > 0 ? [listed(group, { members, website })] : []
    },
  )
  return {
    element:
      groups.length > 0
        ? el('div', { class: 'variables joined' }, ...groups.map(({ element }) => element))
        : null,
    accepted: () => groups.flatMap(({ isLet, keys }) => (isLet() ? keys : [])),
  }
}

/**
 * @param {Variable['group']} group
 * @param {{ members: Variable[], website: string }} options
 */
function listed(group, { members, website }) {
  const keys = members.map(({ key }) => key)
  const list = el('ul', { class: 'values' }, ...members.map(row))
  const question = questions[group]?.(website)
  if (!question) {
    const isLet = () => group === 'verified'
    const refused =
      'Your tool does not write these, because they could change how other programs run.'
    const note = group === 'refused' ? el('p', { class: 'other' }, refused) : null
    return { element: el('div', {}, list, note), isLet, keys }
  }
  const { id, label, why } = question
  const box = /** @type {HTMLInputElement} */ (
    el('input', { type: 'checkbox', id, 'aria-describedby': `${id}-why` })
  )
  const tick = el('p', { class: 'tick' }, box, el('label', { for: id }, label))
  const reason = el('p', { class: 'other', id: `${id}-why` }, why)
  return { element: el('div', {}, list, tick, reason), isLet: () => box.checked, keys }
}

/** @param {Variable} variable */
function row({ key, name, secret }) {
  return el(
    'li',
    {},
    el('code', { class: 'foreign' }, line(key, 128)),
    el('span', { class: 'meaning foreign', dir: 'auto' }, line(name, 200)),
    el(
      'span',
      { class: secret === true ? 'secret' : 'open' },
      secret === true ? 'Secret' : 'Not secret',
    ),
  )
}
