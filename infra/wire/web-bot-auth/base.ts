import {
  type InnerList,
  type Item,
  isInnerList,
  serializeInnerList,
  serializeItem,
} from 'structured-headers'
import { orUndefined } from '../../text.ts'
import type { Fields, ReceivedRequest } from './fields.ts'

// Limited because every base is stored and the client chooses its size.
const maxBaseLength = 8192
const maxComponents = 32

export interface SignedMessage {
  request: ReceivedRequest
  fields: Fields
  /** Public addresses of this installation. */
  baseUrls: readonly string[]
}

/**
 * Returns the signature base (RFC 9421, section 2.5) for each base URL. Returns none if a component is missing, covered
 * twice or not supported, such as a part of a response, or if there are too many components.
 */
export function signatureBases(
  { request, fields, baseUrls }: SignedMessage,
  input: InnerList,
): string[] {
  const [components] = input
  // 1. Reject unsupported components before any value is read.
  if (components.length > maxComponents || !components.every(isSupported)) return []
  const parameters = orUndefined(() => serializeInnerList(input))
  const identifiers = orUndefined(() => components.map((component) => serializeItem(component)))
  if (!parameters || !identifiers || new Set(identifiers).size < identifiers.length) return []
  // 2. Read fields, which are the same for every base URL.
  const values = components.map((component) => fieldComponent(component, fields))
  // 3. Add what depends on the base URL.
  const bases = baseUrls.flatMap((baseUrl) => {
    const derived = derivedComponents(request, baseUrl)
    const lines = components.flatMap(([name], index) => {
      const value = values[index] ?? derived.get(String(name))
      return value === undefined ? [] : `${identifiers[index]}: ${value}`
    })
    if (lines.length < components.length) return []
    const base = [...lines, `"@signature-params": ${parameters}`].join('\n')
    return base.length > maxBaseLength ? [] : base
  })
  return [...new Set(bases)]
}

function isSupported([name, parameters]: Item): boolean {
  if (typeof name !== 'string' || name !== name.toLowerCase()) return false
  if (parameters.size === 0) return true
  return parameters.size === 1 && typeof parameters.get('key') === 'string' && !name.startsWith('@')
}

/** Returns true for components that RFC 9421 defines for requests but this server does not support. */
export const isStandardButUnsupported = ([name, parameters]: Item): boolean =>
  name === '@query-param' || ['sf', 'bs', 'tr'].some((parameter) => parameters.has(parameter))

function fieldComponent([component, parameters]: Item, fields: Fields): string | undefined {
  const name = String(component)
  if (name.startsWith('@')) return undefined
  const key = parameters.get('key')
  if (typeof key !== 'string') return fields.value(name)
  const member = fields.dictionary(name)?.get(key)
  return member && (isInnerList(member) ? serializeInnerList(member) : serializeItem(member))
}

// Returns the derived components (RFC 9421, section 2.2). The host comes from the base URL, because Host is not
// trusted.
function derivedComponents(
  { method, target }: ReceivedRequest,
  baseUrl: string,
): Map<string, string> {
  const { origin, host, protocol, pathname } = new URL(baseUrl)
  const path = pathname.replace(/\/$/, '') + target
  const query = path.indexOf('?')
  return new Map([
    ['@method', method],
    ['@authority', host],
    ['@scheme', protocol.slice(0, -1)],
    ['@target-uri', origin + path],
    ['@request-target', path],
    ['@path', query < 0 ? path : path.slice(0, query)],
    ['@query', query < 0 ? '?' : path.slice(query)],
  ])
}
