/**
 * Characters that change how others look, or are not seen themselves: controls, marks of direction, spaces without
 * width, fillers, tags. Line feeds and tabs are replaced elsewhere, and joiners belong to words and pictures.
 */
const unseen =
  /(?![\n\t]|\u200c|\u200d|\ufe0e|\ufe0f)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/gu
// More than two marks in a row reach over other lines; syllables of some scripts have up to four.
const piled = /((?:(?!\p{scx=Khmer}|\p{scx=Myanmar}|\p{scx=Tibetan})\p{M}){2}|\p{M}{4})\p{M}+/gu

/**
 * Text of others for one line of the page.
 * @param {unknown} value
 * @param {number} [max] characters at most
 */
export function line(value, max = 200) {
  return cut(cleaned(value, (text) => text.replaceAll(/[\n\r\t]+/g, ' ')).trim(), max)
}

/**
 * Text of others that may have several lines, each as it is.
 * @param {unknown} value
 * @param {{ lines: number, columns: number }} bounds
 */
export function block(value, { lines, columns }) {
  const text = cleaned(value, (raw) => raw.replaceAll(/\r\n?/g, '\n').replaceAll('\t', '    '))
  const all = text.split('\n')
  const rows = all.slice(0, lines).map((row) => cut(row.trimEnd(), columns))
  return (all.length > lines ? [...rows, '…'] : rows).join('\n')
}

/**
 * @param {unknown} value
 * @param {(text: string) => string} unified replaces line feeds and tabs
 */
function cleaned(value, unified) {
  const text = unified(typeof value === 'string' ? value : '')
  return text.replaceAll(unseen, '\ufffd').replaceAll(piled, '$1')
}

/**
 * @param {string} text
 * @param {number} max
 */
function cut(text, max) {
  const characters = [...text]
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : text
}

/**
 * An address that a link may lead to; undefined for all others than http(s), and for those with a user name, which hides
 * where they lead.
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
 * Where a login may go: a page of the same origin as the service's dashboard.
 * @param {unknown} destination
 * @param {unknown} dashboard
 * @returns {string | undefined}
 */
export function loginAddress(destination, dashboard) {
  const url = webAddress(destination)
  return url && url.origin === webAddress(dashboard)?.origin ? url.href : undefined
}
