/**
 * Characters that are invisible or change how others are displayed, such as controls, bidirectional marks and
 * zero-width spaces. Excludes line feeds and tabs, which callers replace, and joiners, which are part of words and
 * emoji.
 */
const invisibleCharacters =
  /(?![\n\t]|\u200c|\u200d|\ufe0e|\ufe0f)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/gu
// More than two combining marks in a row overlap other lines. Khmer, Myanmar and Tibetan syllables have up to four.
const stackedMarks =
  /((?:(?!\p{scx=Khmer}|\p{scx=Myanmar}|\p{scx=Tibetan})\p{M}){2}|\p{M}{4})\p{M}+/gu

/**
 * Returns untrusted text as one line, safe to show.
 * @param {unknown} value
 * @param {number} [max] characters
 */
export function singleLine(value, max = 200) {
  return truncate(sanitize(value, (text) => text.replaceAll(/[\n\r\t]+/g, ' ')).trim(), max)
}

/**
 * Returns untrusted text with its line breaks, safe to show.
 * @param {unknown} value
 * @param {{ lines: number, columns: number }} limits
 */
export function multiLine(value, { lines, columns }) {
  const text = sanitize(value, (raw) => raw.replaceAll(/\r\n?/g, '\n').replaceAll('\t', '    '))
  const allLines = text.split('\n')
  const rows = allLines.slice(0, lines).map((row) => truncate(row.trimEnd(), columns))
  return (allLines.length > lines ? [...rows, '…'] : rows).join('\n')
}

/**
 * @param {unknown} value
 * @param {(text: string) => string} replaceBreaks replaces line feeds and tabs
 */
function sanitize(value, replaceBreaks) {
  const text = replaceBreaks(typeof value === 'string' ? value : '')
  return text.replaceAll(invisibleCharacters, '\ufffd').replaceAll(stackedMarks, '$1')
}

/**
 * @param {string} text
 * @param {number} max
 */
function truncate(text, max) {
  const characters = [...text]
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : text
}

/**
 * Returns the URL if it is safe to link to: http or https, and without a user name or password, which can disguise the
 * host.
 * @param {unknown} value
 * @returns {URL | undefined}
 */
export function webAddress(value) {
  if (typeof value !== 'string') return undefined
  try {
    const url = new URL(value)
    return /^https?:$/.test(url.protocol) && url.host && !url.username && !url.password
      ? url
      : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the destination of a login if it has the origin of the service's dashboard; otherwise undefined.
 * @param {unknown} destination
 * @param {unknown} dashboard
 * @returns {string | undefined}
 */
export function loginAddress(destination, dashboard) {
  const url = webAddress(destination)
  return url && url.origin === webAddress(dashboard)?.origin ? url.href : undefined
}
