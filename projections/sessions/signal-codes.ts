import { hash } from 'node:crypto'
import { base32Characters } from '../../infra/ids.ts'

/**
 * Short codes of signals, so that an index can have all that fired in a session: to search 250,000 sessions for one in
 * their rows takes a second. A code begins with a capital, which no other character is, so that it is found nowhere but
 * where it begins. No two signals have one code; a test says so.
 */
export function signalCode(slug: string): string {
  const code = known.get(slug) ?? codeOf(slug)
  if (known.size < mostKnown) known.set(slug, code)
  return code
}

// Each decision has a dozen of the same hundred. A filter may ask for any text.
const known = new Map<string, string>()
const mostKnown = 1000

function codeOf(slug: string): string {
  const bytes = hash('sha256', slug, 'buffer')
  return String.fromCharCode(65 + ((bytes[0] ?? 0) % 26)) + base32Characters(bytes.subarray(1, 5))
}

export const signalCodes = (slugs: string[]): string => slugs.map(signalCode).join('')
