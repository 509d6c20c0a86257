/**
 * An element with attributes; `false` and `undefined` leave one out. Strings among the children become text.
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

const svgSpace = 'http://www.w3.org/2000/svg'

/**
 * A line drawing in a box of 24 by 24, for the eye only.
 * @param {string} paths
 * @param {string} name
 */
export function icon(paths, name) {
  const svg = document.createElementNS(svgSpace, 'svg')
  svg.setAttribute('viewBox', '0 0 24 24')
  svg.setAttribute('class', `icon ${name}`)
  svg.setAttribute('aria-hidden', 'true')
  const path = document.createElementNS(svgSpace, 'path')
  path.setAttribute('d', paths)
  svg.append(path)
  return svg
}

/**
 * A button; what it does is decided when it is pressed.
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
