import { hash } from 'node:crypto'
import { base32Characters } from '../../infra/ids.ts'

/**
 * Returns a short code for a signal, so that an index can hold all signals of a session; searching the rows of 250,000
 * sessions takes a second. Only the first character of a code is a capital, so a code cannot match across two others. A
 * test checks that no two signals have the same code.
 */
export function signalCode(slug: string): string {
  const code = cache.get(slug) ?? codeOf(slug)
  if (cache.size < maxCached) cache.set(slug, code)
  return code
}

// Decisions use a hundred different signals. Bounded, because a filter can contain any text.
const cache = new Map<string, string>()
const maxCached = 1000

function codeOf(slug: string): string {
  const bytes = hash('sha256', slug, 'buffer')
  return String.fromCharCode(65 + ((bytes[0] ?? 0) % 26)) + base32Characters(bytes.subarray(1, 5))
}

export const signalCodes = (slugs: string[]): string => slugs.map(signalCode).join('')
