import { el } from './dom.js'
import { singleLine } from './text.js'

/** @import { Consent, Variable } from './state.js' */

/** @typedef {{ element: HTMLElement | null, accepted: () => string[] }} VariableList */

/** @type {Partial<Record<Variable['group'], (website: string) => { id: string, label: string, hint: string }>>} */
const questions = {
  service: (website) => ({
    id: 'let-own',
    label: 'Write these to my tool’s environment file',
    hint: `Their names start with the id of this service, but nobody has verified that it owns ${website}. If you leave this unchecked, they go to a separate file.`,
  }),
  other: () => ({
    id: 'let-others',
    label: 'Also write these to my tool’s environment file',
    hint: 'Their names do not match a verified name of this service, so other programs may read them. If you leave this unchecked, they go to a separate file.',
  }),
}

/**
 * Returns the list of variables that the agent receives. The tool writes a group with unverified names to its
 * environment file only if the person checks the group's box.
 * @param {Consent} consent
 * @returns {VariableList}
 */
export function createVariableList({ variables = [], service }) {
  const website = singleLine(service.website, 120)
  const groups = /** @type {const} */ (['verified', 'service', 'other', 'refused']).flatMap(
    (group) => {
      const members = variables.filter((variable) => variable.group === group)
      return members.length > 0 ? [createGroup(group, { members, website })] : []
    },
  )
  return {
    element:
      groups.length > 0
        ? el('div', { class: 'variables joined' }, ...groups.map(({ element }) => element))
        : null,
    accepted: () => groups.flatMap(({ isAccepted, keys }) => (isAccepted() ? keys : [])),
  }
}

/**
 * @param {Variable['group']} group
 * @param {{ members: Variable[], website: string }} options
 */
function createGroup(group, { members, website }) {
  const keys = members.map(({ key }) => key)
  const list = el('ul', { class: 'values' }, ...members.map(createRow))
  const question = questions[group]?.(website)
  if (!question) {
    const isAccepted = () => group === 'verified'
    const refused =
      'Your tool does not write these, because they could change how other programs run.'
    const note = group === 'refused' ? el('p', { class: 'other' }, refused) : null
    return { element: el('div', {}, list, note), isAccepted, keys }
  }
  const { id, label, hint } = question
  const box = /** @type {HTMLInputElement} */ (
    el('input', { type: 'checkbox', id, 'aria-describedby': `${id}-why` })
  )
  const choice = el('p', { class: 'tick' }, box, el('label', { for: id }, label))
  const reason = el('p', { class: 'other', id: `${id}-why` }, hint)
  return { element: el('div', {}, list, choice, reason), isAccepted: () => box.checked, keys }
}

/** @param {Variable} variable */
function createRow({ key, name, secret }) {
  return el(
    'li',
    {},
    el('code', { class: 'foreign' }, singleLine(key, 128)),
    el('span', { class: 'meaning hint foreign', dir: 'auto' }, singleLine(name, 200)),
    el(
      'span',
      { class: secret === true ? 'secret' : 'open' },
      secret === true ? 'Secret' : 'Not secret',
    ),
  )
}
