/**
 * Creates an element. Attributes that are `false` or `undefined` are omitted; string children become text.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | undefined>} [attributes]
 * @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== false)
      element.setAttribute(name, value === true ? '' : String(value))
  element.append(...children.filter((child) => child !== null && child !== undefined))
  return element
}

const svgNamespace = 'http://www.w3.org/2000/svg'

/**
 * Creates an SVG icon, hidden from screen readers.
 * @param {string} paths one of `icons`
 * @param {string} name CSS class
 */
export function icon(paths, name) {
  const svg = document.createElementNS(svgNamespace, 'svg')
  svg.setAttribute('viewBox', '0 0 24 24')
  svg.setAttribute('class', `icon ${name}`)
  svg.setAttribute('aria-hidden', 'true')
  const path = document.createElementNS(svgNamespace, 'path')
  path.setAttribute('d', paths)
  svg.append(path)
  return svg
}

/**
 * Creates a button that ignores clicks while it is `aria-disabled`.
 * @param {string} text
 * @param {{ id: string, kind?: string, press: () => void }} options
 */
export function button(text, { id, kind = '', press }) {
  const element = el('button', { type: 'button', id, class: `button ${kind}`.trim() }, text)
  element.addEventListener('click', () => {
    if (element.getAttribute('aria-disabled') !== 'true') press()
  })
  return element
}

// Path data on a 24 × 24 grid.
export const icons = {
  check: 'M5 12.5l4.5 4.5L19 7.5',
  cross: 'M7 7l10 10M17 7L7 17',
  alert: 'M12 7v6M12 16.6v.4',
  clock: 'M12 6.5V12l3.5 2.5M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z',
  closed: 'M4 6h16v13H4zM4 10h16M10 12.8l4 4M14 12.8l-4 4',
  ended: 'M7 12h10',
  tabs: 'M8 8V5h11v11h-3M5 8h11v11H5z',
  tide: 'M3 10c3 0 3-2 6-2s3 2 6 2 3-2 6-2M3 16c3 0 3-2 6-2s3 2 6 2 3-2 6-2',
  verified: 'M12 3l7 2.5v5.7c0 4.4-2.9 7.6-7 9.8-4.1-2.2-7-5.4-7-9.8V5.5zM8.6 12l2.5 2.5 4.4-4.6',
  unverified: 'M12 3l7 2.5v5.7c0 4.4-2.9 7.6-7 9.8-4.1-2.2-7-5.4-7-9.8V5.5zM12 8.5v4M12 15.4v.3',
}
