/** Characters as people and JSON Schema count them: code points, so that an emoji outside the BMP is one, not two. */
export function characterCount(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** Whether the text can be stored and shown: no control characters and no half of a surrogate pair. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text)
}
