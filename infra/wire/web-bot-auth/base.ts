import {
  type InnerList,
  type Item,
  isInnerList,
  parseDictionary,
  serializeInnerList,
  serializeItem,
} from 'structured-headers'
import { orUndefined } from '../../text.ts'
import { fieldValue, type ReceivedRequest } from './fields.ts'

// Of covered headers, whose size the client chooses.
const maxBaseLength = 8192

/**
 * What a signature over the components signs, where the request was sent to `baseUrl`. RFC 9421, section 2.5. Undefined
 * where a component is missing, is covered twice or is one that is not read here, such as a part of a response.
 */
export function signatureBase(
  request: ReceivedRequest,
  { input, baseUrl }: { input: InnerList; baseUrl: string },
): string | undefined {
  const lines = input[0].map((component) => lineOf(component, { request, baseUrl }))
  const parameters = orUndefined(() => serializeInnerList(input))
  if (lines.includes(undefined) || new Set(lines).size < lines.length || !parameters) return undefined
  const base = [...lines, `"@signature-params": ${parameters}`].join('\n')
  return base.length > maxBaseLength ? undefined : base
}

interface Target {
  request: ReceivedRequest
  baseUrl: string
}

function lineOf(component: Item, target: Target): string | undefined {
  const [name, parameters] = component
  if (typeof name !== 'string' || name !== name.toLowerCase()) return undefined
  const value = componentValue(name, parameters, target)
  return value === undefined ? undefined : `${serializeItem(component)}: ${value}`
}

function componentValue(name: string, parameters: Item[1], target: Target): string | undefined {
  if (parameters.size === 0)
    return name.startsWith('@') ? derived(name, target) : fieldValue(target.request, name)
  const key = parameters.get('key')
  if (parameters.size > 1 || typeof key !== 'string') return undefined
  return memberValue(fieldValue(target.request, name), key)
}

// RFC 9421, section 2.1.2
function memberValue(field: string | undefined, key: string): string | undefined {
  const member = orUndefined(() => parseDictionary(field ?? '').get(key))
  if (!member) return undefined
  return isInnerList(member) ? serializeInnerList(member) : serializeItem(member)
}

// RFC 9421, section 2.2. The names of the host are those of `baseUrl`, because the request's own Host proves nothing.
function derived(name: string, { request, baseUrl }: Target): string | undefined {
  const { origin, host, protocol, pathname } = new URL(baseUrl)
  const target = pathname.replace(/\/$/, '') + request.target
  const query = target.indexOf('?')
  switch (name) {
    case '@method':
      return request.method
    case '@authority':
      return host
    case '@scheme':
      return protocol.slice(0, -1)
    case '@target-uri':
      return origin + target
    case '@request-target':
      return target
    case '@path':
      return query < 0 ? target : target.slice(0, query)
    case '@query':
      return query < 0 ? '?' : target.slice(query)
    default:
      return undefined
  }
}
