import { css, parseHex, readableOn, standsOut } from './colors.js'

const dark = matchMedia('(prefers-color-scheme: dark)')
/** @type {any} */
let branding

/**
 * Paints accents in the service's colours, wherever they stand out; without any, in ours.
 * @param {any} given
 */
export function paintBrand(given) {
  branding = given
  paint()
}

dark.addEventListener('change', paint)

function paint() {
  const style = document.documentElement.style
  const ground = parseHex(getComputedStyle(document.documentElement).getPropertyValue('--panel').trim())
  const first = parseHex(branding?.primary_color)
  if (!first || !ground) return
  const brand = standsOut(first, ground)
  const second = standsOut(parseHex(branding?.secondary_color) ?? first, ground)
  style.setProperty('--brand', css(brand))
  style.setProperty('--on-brand', css(readableOn(brand)))
  style.setProperty('--brand-second', css(second))
}
