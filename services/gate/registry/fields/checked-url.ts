import type { Environment } from '../../../../schemas/events.ts'
import { bounds } from './bounds.ts'
import { type Member, refused } from './refused.ts'

// As RFC 3986 writes it, with nothing before the host: what a person reads is where a browser goes.
const uri =
  /^https?:\/\/(\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?(?:[/?](?:[\w.~:/?@!$&'()*+,;=-]|%[\da-f]{2})*)?(?:#(?:[\w.~:/?@!$&'()*+,;=-]|%[\da-f]{2})*)?$/i

/** The URL as it was sent, which people are shown and led to; 422 for anything but an absolute https URL. */
export function checkedUrl(text: string, member: Member): string {
  if (text.length <= bounds.url && isUrl(text, member.environment)) return text
  const schemes = member.environment === 'test' ? 'http or https' : 'https'
  const expected = `an absolute ${schemes} URL of at most ${bounds.url} characters, percent-encoded, without a user name`
  throw refused(member, { issue: 'invalid', expected })
}

/** In the test environment developers run services on their own machines. */
function isUrl(text: string, environment: Environment): boolean {
  const host = uri.exec(text)?.[1]?.toLowerCase()
  const url = URL.parse(text)
  if (host === undefined || url === null) return false
  // The host is written as it is reached: not 127.1, nor with digits that mean others.
  if (url.hostname !== host) return false
  return url.protocol === 'https:' || environment === 'test'
}
