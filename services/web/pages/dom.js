const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

class Markup {
  constructor(text) {
    this.text = text
  }
}

/** Returns markup for `innerHTML` with all values escaped, except markup. Attributes must be quoted. */
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
  const present = entries.filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  )
  return html`<dl class="facts">${present.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`
}

export function words(slug) {
  const text = String(slug)
    .replaceAll(/[_-]/g, ' ')
    .replaceAll(/\b(api|cdp|db|gpu|ip|mime|os|pdf|ua|url|utc|vpn)\b/gi, (word) =>
      word.toUpperCase(),
    )
    .replaceAll(/\bweb(gl|gpu)\b/gi, (_, rest) => `Web${rest.toUpperCase()}`)
  return text.charAt(0).toUpperCase() + text.slice(1)
}

export function time(iso) {
  return iso
    ? new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
    : null
}

export function trueNames(group) {
  const names = Object.entries(group ?? {}).filter(([, value]) => value === true)
  return names.map(([name]) => words(name)).join(', ')
}

export function plain(value) {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.length > 0 ? value.map(plain).join(', ') : 'none'
  if (value && typeof value === 'object')
    return Object.entries(value)
      .map(([name, item]) => `${words(name)} ${plain(item)}`)
      .join(', ')
  return value
}
