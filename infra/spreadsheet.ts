// Text that starts like this is a formula to spreadsheets; some also accept full-width characters.
const formulaStart = /^[=+\-@＝＋－＠\t\r\n]/

/** Escapes a cell against CSV injection: a formula gets a leading apostrophe, so that a spreadsheet displays it. */
export const escapeCell = (text: string): string => (formulaStart.test(text) ? `'${text}` : text)
