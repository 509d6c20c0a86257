/** Code points, as JSON Schema counts: an emoji outside the BMP is one. */
export function characterCount(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** No control characters and no half of a surrogate pair. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text)
}

/** No characters that end lines or turn others around. */
export function isOneLine(text: string): boolean {
  return isPlainText(text) && !/[\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(text)
}

export function isVisible(text: string): boolean {
  return /[^\s\p{Default_Ignorable_Code_Point}]/u.test(text)
}

/** undefined for what is not JSON. */
export function parsedJson(text: string): unknown {
  return orUndefined(() => JSON.parse(text))
}

/** For readers that throw at whatever is malformed. */
export function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** The same JSON with the members of its objects in one order, whatever order they came in. */
export function sortedMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedMembers)
  if (typeof value !== 'object' || value === null) return value ?? null
  const entries = Object.entries(value).filter(([, member]) => member !== undefined)
  const sorted = entries.sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, member]) => [name, sortedMembers(member)]))
}

/** undefined for what is not base64url as we write it: another alphabet, padding, white space, bits left over. */
export function base64urlBytes(text: string): Buffer | undefined {
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

/** For the content of an element and for an attribute in quotes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}

const characters = Object.fromEntries(
  Object.entries(entities).map(([character, entity]) => [entity, character]),
)

/** The text of what `escapeHtml` wrote. */
export function unescapeHtml(html: string): string {
  return html.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => characters[entity] ?? entity)
}
