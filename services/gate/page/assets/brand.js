import { css, parseHex, readableOn, standsOut } from './colors.js'

const dark = matchMedia('(prefers-color-scheme: dark)')
/** @type {import('./state.js').Branding | undefined} */
let branding

/**
 * Paints accents in the service's colours, and Approve where it stands out in them; the rest is in ours.
 * @param {import('./state.js').Branding | undefined} given
 */
export function paintBrand(given) {
  branding = given
  paint()
}

dark.addEventListener('change', paint)

function paint() {
  const ground = parseHex(getComputedStyle(document.documentElement).getPropertyValue('--panel').trim())
  const brand = parseHex(branding?.primary_color)
  if (!brand || !ground) return
  set('--brand', brand)
  set('--on-brand', readableOn(brand))
  set('--brand-second', parseHex(branding?.secondary_color) ?? brand)
  const action = standsOut(brand, ground) ? brand : undefined
  set('--action', action)
  set('--on-action', action && readableOn(action))
}

/**
 * @param {string} property
 * @param {import('./colors.js').Color} [color] without one the style sheet decides
 */
function set(property, color) {
  const { style } = document.documentElement
  if (color) style.setProperty(property, css(color))
  else style.removeProperty(property)
}
