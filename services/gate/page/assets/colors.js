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
 * Contrast ratio by WCAG, 1 to 21.
 * @param {Color} one
 * @param {Color} other
 */
export function contrast(one, other) {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (high + 0.05) / (low + 0.05)
}

/** @type {Record<'black' | 'white', Color>} */
const { black, white } = { black: [0, 0, 0], white: [255, 255, 255] }

/**
 * Black or white, whichever is read better on the colour: at least 4.5 to 1 on any.
 * @param {Color} color
 */
export function readableOn(color) {
  return contrast(color, black) > contrast(color, white) ? black : white
}

/**
 * Whether what is painted in the colour stands out from the ground without an edge (3 to 1).
 * @param {Color} color
 * @param {Color} ground
 */
export function standsOut(color, ground) {
  return contrast(color, ground) >= 3
}

/**
 * Whether what is painted in the colour looks filled, where it has an edge (1.5 to 1).
 * @param {Color} color
 * @param {Color} ground
 */
export function looksFilled(color, ground) {
  return contrast(color, ground) >= 1.5
}

/** @param {Color} color */
export function css([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`
}
