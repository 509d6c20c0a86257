/**
 * The start of the bytes as UTF-8 text of at most `maxBytes` bytes, cut between two characters. What Postgres cannot
 * store (U+0000) and what is not UTF-8 becomes U+FFFD.
 */
export function cutText(bytes: Uint8Array, maxBytes: number): string {
  // What is not UTF-8 becomes longer, so it is cut once more.
  const text = cut(Buffer.from(bytes), maxBytes).toString('utf8').replaceAll('\0', '\uFFFD')
  return cut(Buffer.from(text), maxBytes).toString('utf8')
}

function cut(bytes: Buffer, max: number): Buffer {
  if (bytes.length <= max) return bytes
  let end = max
  // A character has at most three bytes after its first.
  while (end > max - 3 && isContinuation(bytes[end])) end--
  return bytes.subarray(0, isContinuation(bytes[end]) ? max : end)
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80
