import { isDistinct, isVisibleFill, parseHex, textColorOn, toCss } from './colors.js'

/** @import { Branding } from './state.js' */

/**
 * Applies the service's colors to accents, and to the Approve button if it remains visible.
 * @param {Branding | undefined} branding
 */
export function applyBranding(branding) {
  const root = document.documentElement
  /** @param {string} property */
  const colorOf = (property) => parseHex(getComputedStyle(root).getPropertyValue(property).trim())
  const background = colorOf('--panel')
  const brand = parseHex(branding?.primary_color)
  if (!brand || !background) return
  const action = isVisibleFill(brand, background) ? brand : undefined
  const properties = {
    '--brand': brand,
    '--on-brand': textColorOn(brand),
    '--brand-second': parseHex(branding?.secondary_color) ?? brand,
    '--action': action,
    '--on-action': action && textColorOn(action),
    '--action-edge': action && !isDistinct(action, background) ? colorOf('--muted') : undefined,
  }
  for (const [property, color] of Object.entries(properties)) {
    // Removing a property restores the style sheet's default.
    if (color) root.style.setProperty(property, toCss(color))
    else root.style.removeProperty(property)
  }
}
