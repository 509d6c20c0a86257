const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

class Markup {
  constructor(text) {
    this.text = text
  }
}

/** Returns markup for `innerHTML`. Escapes all values except nested markup. Attribute values must be quoted. */
export function html(strings, ...values) {
  return new Markup(strings.map((text, i) => text + markupOf(values[i])).join(''))
}

function markupOf(value) {
  if (value instanceof Markup) return value.text
  if (Array.isArray(value)) return value.map(markupOf).join('')
  return String(value ?? '').replaceAll(/[&<>"]/g, (character) => entities[character])
}

export function panel(title, content) {
  return html`<section class="panel"><h2>${title}</h2>${content}</section>`
}

/** Renders entries as a description list, without empty values. */
export function facts(entries) {
  const filledEntries = entries.filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  )
  return html`<dl class="facts">${filledEntries.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** Returns a readable label for an identifier: `webgl_vendor` becomes "WebGL vendor". */
export function labelText(slug) {
  const text = String(slug)
    .replaceAll(/[_-]/g, ' ')
    .replaceAll(/\b(api|cdp|db|gpu|ip|mime|os|pdf|ua|url|utc|vpn)\b/gi, (word) =>
      word.toUpperCase(),
    )
    .replaceAll(/\bweb(gl|gpu)\b/gi, (_, rest) => `Web${rest.toUpperCase()}`)
  return text.charAt(0).toUpperCase() + text.slice(1)
}

export function formatTime(iso) {
  return iso
    ? new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
    : null
}

/** Returns the labels of the members that are true, separated by commas. */
export function trueNames(group) {
  const names = Object.entries(group ?? {}).filter(([, value]) => value === true)
  return names.map(([name]) => labelText(name)).join(', ')
}

/** Returns a value of the REST API as text. */
export function plainText(value) {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.length > 0 ? value.map(plainText).join(', ') : 'none'
  if (value && typeof value === 'object')
    return Object.entries(value)
      .map(([name, item]) => `${labelText(name)} ${plainText(item)}`)
      .join(', ')
  return value
}
