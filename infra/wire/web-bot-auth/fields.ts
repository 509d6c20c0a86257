import {
  type Dictionary,
  type InnerList,
  isInnerList,
  parseDictionary,
  parseItem,
} from 'structured-headers'
import { orUndefined } from '../../text.ts'

// Node takes 16 KiB of headers in all.
const maxLength = 4096
const mostSignatures = 8
const maxHostLength = 253

export interface ReceivedRequest {
  method: string
  /** Path and query as they came. */
  target: string
  /** Names and values by turns, as they came. */
  rawHeaders: readonly string[]
}

/** Lines of one name are one value with commas between them. Undefined without any. RFC 9421, section 2.1 */
export function fieldValue({ rawHeaders }: ReceivedRequest, name: string): string | undefined {
  const values: string[] = []
  for (let i = 1; i < rawHeaders.length; i += 2)
    if (isNamed(rawHeaders[i - 1], name)) values.push(rawHeaders[i]?.trim() ?? '')
  return values.length === 0 ? undefined : values.join(', ')
}

// Lengths first, because most headers are others.
const isNamed = (header = '', name: string) =>
  header.length === name.length && header.toLowerCase() === name

/** Header fields of one request by lower-case name. */
export interface Fields {
  value(name: string): string | undefined
  /** Returns undefined if the field is absent, malformed or too long. */
  dictionary(name: string): Dictionary | undefined
}

/** Parses each field once, however many signatures cover it. */
export function readFields(request: ReceivedRequest): Fields {
  const dictionaries = new Map<string, Dictionary | undefined>()
  const value = (name: string) => fieldValue(request, name)
  return {
    value,
    dictionary(name) {
      if (!dictionaries.has(name)) dictionaries.set(name, parsed(value(name)))
      return dictionaries.get(name)
    },
  }
}

const parsed = (value: string | undefined) =>
  value === undefined ? undefined : orUndefined(() => parseDictionary(bounded(value)))

export interface SignatureField {
  label: string
  /** Covered components, and the parameters of the signature. */
  input: InnerList
  bytes: Buffer
}

/** The signatures that have both an input and bytes, in the order of their inputs; undefined where a field is malformed. */
export function signatureFields(input: string, signature: string): SignatureField[] | undefined {
  const inputs = parsed(input)
  const signatures = parsed(signature)
  if (!inputs || !signatures) return undefined
  return [...inputs].slice(0, mostSignatures).flatMap(([label, member]) => {
    const bytes = signatures.get(label)?.[0]
    if (!isInnerList(member) || !(bytes instanceof ArrayBuffer)) return []
    return [{ label, input: member, bytes: Buffer.from(bytes) }]
  })
}

/** Where an agent publishes its keys, by the dictionary key that names it; the older form names one, without a key. */
export type SignatureAgents =
  | { form: 'dictionary'; urls: Map<string, AgentUrl> }
  | { form: 'string'; url: AgentUrl }

export interface AgentUrl {
  /** Undefined where it is no https URL. */
  url: URL | undefined
  /** `directory` unless the parameter says something else. */
  type: string
}

/**
 * `sig1="https://agent.example";type=directory` (draft-meunier-web-bot-auth-architecture-04 and later), or
 * `"https://agent.example"` as before. Undefined where it is neither.
 */
export function readSignatureAgents(value: string): SignatureAgents | undefined {
  const item = orUndefined(() => parseItem(bounded(value)))
  if (item) return { form: 'string', url: agentUrl(item) }
  const dictionary = parsed(value)
  if (!dictionary) return undefined
  return {
    form: 'dictionary',
    urls: new Map([...dictionary].map(([key, member]) => [key, agentUrl(member)])),
  }
}

/**
 * Host of the first https address that the Signature-Agent header names, with its port unless that is the usual one. Null
 * without any.
 */
export function namedAgentHost(request: ReceivedRequest): string | null {
  const agents = readSignatureAgents(fieldValue(request, 'signature-agent') ?? '')
  if (!agents) return null
  const named = agents.form === 'string' ? [agents.url] : [...agents.urls.values()]
  return named.find(({ url }) => url)?.url?.host ?? null
}

/** Returns where the agent of a host publishes its keys. */
export const directoryOf = (host: string): string =>
  `https://${host}/.well-known/http-message-signatures-directory`

function agentUrl([value, parameters]: [unknown, ReadonlyMap<string, unknown>]): AgentUrl {
  const url = typeof value === 'string' ? URL.parse(value) : null
  // The dot at the end of a whole name changes nothing.
  if (url) url.hostname = url.hostname.replace(/\.$/, '')
  const isGood = url?.protocol === 'https:' && url.hostname.length <= maxHostLength
  return {
    url: isGood ? url : undefined,
    type: String(parameters.get('type') ?? 'directory'),
  }
}

/**
 * A domain, with its port unless that is 443, as the Signature-Agent header of who has it is read. Undefined for an address,
 * or what is no name of one host.
 */
export function agentDomain(text: string): string | undefined {
  const { url } = agentUrl([/[/?#@\\\s]/.test(text) ? undefined : `https://${text}`, new Map()])
  return url && /^([a-z0-9-]+\.)+[a-z][a-z0-9-]*$/.test(url.hostname) ? url.host : undefined
}

function bounded(value: string): string {
  if (value.length > maxLength) throw new RangeError('the field is too long')
  return value
}
