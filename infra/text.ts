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
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** undefined for what is not base64url as we write it: another alphabet, padding, white space, bits left over. */
export function base64urlBytes(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}
