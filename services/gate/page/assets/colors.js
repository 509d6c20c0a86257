/** @typedef {[number, number, number]} Color red, green and blue, 0 to 255 */

/**
 * @param {unknown} text `#RGB`, `#RGBA`, `#RRGGBB` or `#RRGGBBAA`; transparency is ignored
 * @returns {Color | undefined}
 */
export function parseHex(text) {
  if (typeof text !== 'string') return undefined
  const short = /^#([\da-f])([\da-f])([\da-f])[\da-f]?$/i.exec(text)
  const long = /^#([\da-f]{2})([\da-f]{2})([\da-f]{2})(?:[\da-f]{2})?$/i.exec(text)
  const digits = short ? short.slice(1).map((digit) => digit + digit) : long?.slice(1)
  if (!digits) return undefined
  const [red = 0, green = 0, blue = 0] = digits.map((pair) => Number.parseInt(pair, 16))
  return [red, green, blue]
}

/** @param {Color} color */
function luminance(color) {
  const [red = 0, green = 0, blue = 0] = color.map((value) => {
    const part = value / 255
    return part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/**
 * Returns the WCAG contrast ratio, 1 to 21.
 * @param {Color} first
 * @param {Color} second
 */
export function contrast(first, second) {
  const [low = 0, high = 0] = [luminance(first), luminance(second)].sort((a, b) => a - b)
  return (high + 0.05) / (low + 0.05)
}

/** @type {Record<'black' | 'white', Color>} */
const { black, white } = { black: [0, 0, 0], white: [255, 255, 255] }

/**
 * Returns black or white, whichever has more contrast to the color: at least 4.5:1.
 * @param {Color} color
 */
export function textColorOn(color) {
  return contrast(color, black) > contrast(color, white) ? black : white
}

/**
 * Returns true if a shape in the color has enough contrast (3:1) to need no border.
 * @param {Color} color
 * @param {Color} background
 */
export function isDistinct(color, background) {
  return contrast(color, background) >= 3
}

/**
 * Returns true if a shape in the color has enough contrast (1.5:1) to look filled, given a border.
 * @param {Color} color
 * @param {Color} background
 */
export function isVisibleFill(color, background) {
  return contrast(color, background) >= 1.5
}

/** @param {Color} color */
export function toCss([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`
}
