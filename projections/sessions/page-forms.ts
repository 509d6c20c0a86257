import { domainToUnicode } from 'node:url'
import { isPlainText } from '../../infra/text.ts'

/** A page's address as it is stored and, where that differs, as people read and type it: they search for either. */
export function searchedForms(url: string): string[] {
  const read = withUnicodeHost(url).replace(/(?:%[\da-f]{2})+/gi, decoded)
  // Forms write a space as +, and so does whoever searches without encoding.
  return [...new Set([url, read, read.replaceAll('+', ' ')])]
}

function withUnicodeHost(url: string): string {
  const { hostname = '' } = URL.parse(url) ?? {}
  return hostname.includes('xn--') ? url.replace(hostname, domainToUnicode(hostname) || hostname) : url
}

/** As it was where it is not UTF-8, or would break the line. */
function decoded(escapes: string): string {
  try {
    const text = decodeURIComponent(escapes)
    return isPlainText(text) ? text : escapes
  } catch {
    return escapes
  }
}
