/** Counts code points, as JSON Schema does: an emoji outside the BMP is one. */
export function characterCount(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** Returns true for text without control characters or lone surrogates. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text)
}

/** Returns true for plain text without line separators or bidirectional control characters. */
export function isOneLine(text: string): boolean {
  return isPlainText(text) && !/[\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(text)
}

/** Returns true if the text has a visible character. */
export function isVisible(text: string): boolean {
  return /[^\s\p{Default_Ignorable_Code_Point}]/u.test(text)
}

/** Returns `1 session`, `2 sessions`. */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Parses JSON; undefined if it is malformed. */
export function parseJsonOrUndefined(text: string): unknown {
  return orUndefined(() => JSON.parse(text))
}

/** Returns the result of `read`, or undefined if it throws. */
export function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Returns the JSON value with the members of all objects sorted by name. */
export function sortMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortMembers)
  if (typeof value !== 'object' || value === null) return value ?? null
  const entries = Object.entries(value).filter(([, member]) => member !== undefined)
  const sorted = entries.sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, member]) => [name, sortMembers(member)]))
}

/** Decodes canonical base64url; undefined for another alphabet, padding, white space or leftover bits. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text for the content of an element and for a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}

const characters = Object.fromEntries(
  Object.entries(entities).map(([character, entity]) => [entity, character]),
)

/** Reverses `escapeHtml`. */
export function unescapeHtml(html: string): string {
  return html.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => characters[entity] ?? entity)
}
