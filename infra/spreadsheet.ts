// Spreadsheets take what begins like this for a formula, and some of them its wide forms, too.
const formula = /^[=+\-@＝＋－＠\t\r\n]/

/** Returns the text of a cell so that a spreadsheet shows it and does not run it: a formula gets an apostrophe before it. */
export const harmlessCell = (text: string): string => (formula.test(text) ? `'${text}` : text)
