/** Nothing in it means anything to any reader of such files. */
const bare = /^[\w./:@%+=,-]+$/

/**
 * The value as a `.env` file holds it, so that Node's parseEnv, the dotenv packages and a shell all read the same.
 * undefined where they cannot: a carriage return or NUL, or an apostrophe together with what double quotes leave special.
 * Backticks, which some readers take for quotes, would make a shell run the value.
 */
export function quoted(value: string): string | undefined {
  // JSON and files would not give back half of a surrogate pair.
  if (/[\r\0]/.test(value) || !value.isWellFormed()) return undefined
  if (bare.test(value)) return value
  // An escaped quote, to some.
  if (value.endsWith('\\')) return undefined
  if (!value.includes("'")) return `'${value}'`
  return /["$`\\]/.test(value) ? undefined : `"${value}"`
}

/**
 * The text without the assignments of the name (letters, digits, underscores), and without the lines that their values
 * take. What is in quotes may look like one, too.
 */
export function withoutAssignments(text: string, name: string): string {
  const value = String.raw`(?:'[^']*'|"[^"]*"|\`[^\`]*\`)?[^\n]*(?:\n|$)`
  return text.replace(new RegExp(String.raw`^[ \t]*(?:export[ \t]+)?${name}[ \t]*=[ \t]*${value}`, 'gm'), '')
}
