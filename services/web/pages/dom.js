export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag)
  const { data = {}, style = {}, ...rest } = props
  Object.assign(element, rest)
  Object.assign(element.dataset, data)
  for (const [name, value] of Object.entries(style)) element.style.setProperty(name, value)
  element.append(...children.filter((child) => child !== null && child !== undefined))
  return element
}

const svgSpace = 'http://www.w3.org/2000/svg'

export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(svgSpace, tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children)
  return element
}

export function panel(title, ...children) {
  return el('section', { className: 'panel' }, el('h2', {}, title), ...children)
}

export function facts(entries) {
  const known = entries.filter(([, value]) => value !== null && value !== undefined && value !== '')
  const rows = known.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, String(value))])
  return el('dl', { className: 'facts' }, ...rows)
}

export function words(slug) {
  const text = String(slug)
    .replaceAll(/[_-]/g, ' ')
    .replaceAll(/\b(api|cdp|db|gpu|ip|mime|os|pdf|ua|url|utc|vpn)\b/gi, (word) => word.toUpperCase())
    .replaceAll(/\bweb(gl|gpu)\b/gi, (_, rest) => `Web${rest.toUpperCase()}`)
  return text.charAt(0).toUpperCase() + text.slice(1)
}

export function time(iso) {
  return iso ? new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' }) : null
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
