import { hash } from 'node:crypto'
import { base32Characters } from '../../infra/ids.ts'

/**
 * Returns a short code for a signal, so that an index can contain all signals of a session. Only the first character of
 * a code is uppercase, so a code cannot match across two others. A test checks that codes are unique.
 */
export function signalCode(slug: string): string {
  const code = cache.get(slug) ?? codeOf(slug)
  if (cache.size < maxCached) cache.set(slug, code)
  return code
}

// Bounded, because a filter can contain any text. Decisions use about a hundred signals.
const cache = new Map<string, string>()
const maxCached = 1000

function codeOf(slug: string): string {
  const bytes = hash('sha256', slug, 'buffer')
  return String.fromCharCode(65 + ((bytes[0] ?? 0) % 26)) + base32Characters(bytes.subarray(1, 5))
}

export const signalCodes = (slugs: string[]): string => slugs.map(signalCode).join('')
