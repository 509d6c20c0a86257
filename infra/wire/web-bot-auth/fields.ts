import {
  type Dictionary,
  type InnerList,
  isInnerList,
  parseDictionary,
  parseItem,
} from 'structured-headers'
import { orUndefined } from '../../text.ts'

// Longest field. Node limits all headers to 16 KiB.
const maxLength = 4096
const maxSignatures = 8
const maxHostLength = 253

export interface ReceivedRequest {
  method: string
  /** Path and query as received. */
  target: string
  /** Alternating names and values, as received. */
  rawHeaders: readonly string[]
}

/** Returns a header field, its lines joined by commas (RFC 9421, section 2.1); undefined if it is missing. */
export function fieldValue({ rawHeaders }: ReceivedRequest, name: string): string | undefined {
  const values: string[] = []
  for (let i = 1; i < rawHeaders.length; i += 2)
    if (hasName(rawHeaders[i - 1], name)) values.push(rawHeaders[i]?.trim() ?? '')
  return values.length === 0 ? undefined : values.join(', ')
}

// Compares the lengths first, because most headers have another name.
const hasName = (header = '', name: string) =>
  header.length === name.length && header.toLowerCase() === name

/** Header fields of one request by lower-case name. */
export interface Fields {
  value(name: string): string | undefined
  /** Returns undefined if the field is absent, malformed or too long. */
  dictionary(name: string): Dictionary | undefined
}

/** Returns the request's header fields. Parses each one once, however many signatures cover it. */
export function readFields(request: ReceivedRequest): Fields {
  const dictionaries = new Map<string, Dictionary | undefined>()
  const value = (name: string) => fieldValue(request, name)
  return {
    value,
    dictionary(name) {
      if (!dictionaries.has(name)) dictionaries.set(name, parseField(value(name)))
      return dictionaries.get(name)
    },
  }
}

const parseField = (value: string | undefined) =>
  value === undefined ? undefined : orUndefined(() => parseDictionary(bounded(value)))

export interface SignatureField {
  label: string
  /** Covered components, and the parameters of the signature. */
  input: InnerList
  bytes: Buffer
}

/** Returns the signatures that are in both fields, in input order; undefined if a field is malformed. */
export function signatureFields(input: string, signature: string): SignatureField[] | undefined {
  const inputs = parseField(input)
  const signatures = parseField(signature)
  if (!inputs || !signatures) return undefined
  return [...inputs].slice(0, maxSignatures).flatMap(([label, member]) => {
    const bytes = signatures.get(label)?.[0]
    if (!isInnerList(member) || !(bytes instanceof ArrayBuffer)) return []
    return [{ label, input: member, bytes: Buffer.from(bytes) }]
  })
}

/** Agents of a request by dictionary key. The older form of the header has one agent without a key. */
export type SignatureAgents =
  | { form: 'dictionary'; urls: Map<string, AgentUrl> }
  | { form: 'string'; url: AgentUrl }

export interface AgentUrl {
  /** undefined unless it is an https URL. */
  url: URL | undefined
  /** The parameter `type`; default `directory`. */
  type: string
}

/**
 * Parses Signature-Agent: `sig1="https://agent.example";type=directory` (draft-meunier-web-bot-auth-architecture-04 and
 * later) or the older `"https://agent.example"`. Returns undefined if it is malformed.
 */
export function readSignatureAgents(value: string): SignatureAgents | undefined {
  const item = orUndefined(() => parseItem(bounded(value)))
  if (item) return { form: 'string', url: agentUrl(item) }
  const dictionary = parseField(value)
  if (!dictionary) return undefined
  return {
    form: 'dictionary',
    urls: new Map([...dictionary].map(([key, member]) => [key, agentUrl(member)])),
  }
}

/**
 * Returns the host of the first https URL in the Signature-Agent header, with a non-default port; null if there is
 * none.
 */
export function signatureAgentHost(request: ReceivedRequest): string | null {
  const agents = readSignatureAgents(fieldValue(request, 'signature-agent') ?? '')
  if (!agents) return null
  const urls = agents.form === 'string' ? [agents.url] : [...agents.urls.values()]
  return urls.find(({ url }) => url)?.url?.host ?? null
}

/** Returns the URL at which the agent of a host publishes its keys. */
export const directoryOf = (host: string): string =>
  `https://${host}/.well-known/http-message-signatures-directory`

function agentUrl([value, parameters]: [unknown, ReadonlyMap<string, unknown>]): AgentUrl {
  const url = typeof value === 'string' ? URL.parse(value) : null
  // Removes the trailing dot of an absolute name.
  if (url) url.hostname = url.hostname.replace(/\.$/, '')
  const isValid = url?.protocol === 'https:' && url.hostname.length <= maxHostLength
  return {
    url: isValid ? url : undefined,
    type: String(parameters.get('type') ?? 'directory'),
  }
}

/**
 * Normalizes an agent's domain as in its Signature-Agent header, with a port unless it is 443. Returns undefined for an
 * IP address or anything else that is not one host name.
 */
export function agentDomain(text: string): string | undefined {
  const { url } = agentUrl([/[/?#@\\\s]/.test(text) ? undefined : `https://${text}`, new Map()])
  return url && /^([a-z0-9-]+\.)+[a-z][a-z0-9-]*$/.test(url.hostname) ? url.host : undefined
}

function bounded(value: string): string {
  if (value.length > maxLength) throw new RangeError('the field is too long')
  return value
}
