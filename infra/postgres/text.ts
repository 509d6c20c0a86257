/** Text as Postgres can store it: it has no NUL, which a page can send in a URL. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd')
}

/** What a search compares: lower case by JavaScript's rules on both sides, since Postgres's depend on its locale. */
export function searchable(...parts: (string | null)[]): string {
  return storable(parts.map((part) => part ?? '').join('\n')).toLowerCase()
}

/** A LIKE pattern for "contains the text", its wildcards taken literally. */
export function containsPattern(text: string): string {
  return `%${searchable(text).replace(/[\\%_]/g, '\\$&')}%`
}
