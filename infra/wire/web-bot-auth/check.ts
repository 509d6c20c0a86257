import { createHash } from 'node:crypto'
import type { InnerList, Item } from 'structured-headers'
import { isStandardButUnsupported, type SignedMessage, signatureBases } from './base.ts'
import {
  type AgentUrl,
  directoryOf,
  fieldValue,
  type ReceivedRequest,
  readFields,
  readSignatureAgents,
  type SignatureAgents,
  type SignatureField,
  signatureFields,
} from './fields.ts'

/** A signature that is valid as far as can be checked without the key. */
export interface AgentSignature {
  /** Host of the agent's directory, with a non-default port. */
  agent: string
  /** URL of the agent's keys. */
  directory: string
  /** Thumbprint of the key. */
  keyId: string
  /** Possible signature bases, one per base URL of this installation. */
  bases: string[]
  bytes: Buffer
  /** Epoch milliseconds. */
  createdAt: number
  expiresAt: number
  /** Hash (hex) of the key id and the nonce (without one, of the signature), by which replays are detected. */
  nonceHash: string
}

/**
 * `malformed`: a header violates its standard. `tag`: no signature is for Web Bot Auth. `agent`: Signature-Agent has no
 * https URL. `coverage`: neither `@authority` nor `@target-uri` is covered, or `signature-agent` is not. `component`: a
 * covered component is missing or unknown. `parameters`: `created`, `expires` or `keyid` is missing. `lifetime`: longer
 * than allowed.
 */
export type InvalidSignature =
  | ('malformed' | 'tag' | 'agent' | 'coverage' | 'component' | 'parameters')
  | ('lifetime' | 'not_yet_valid' | 'expired')

/**
 * `absent`: one of the three headers is missing. `algorithm`: not Ed25519. `directory_type`: not a directory, such as a
 * card. `component`: of a kind that this server does not support.
 */
export type CheckedSignature =
  | { status: 'absent' }
  | { status: 'invalid'; reason: InvalidSignature }
  | { status: 'unknown_key'; reason: 'algorithm' | 'directory_type' | 'component' }
  | { status: 'signed'; signature: AgentSignature }

export interface SignatureRules {
  /** Public base URLs of this installation. The request's own Host is not trusted. */
  baseUrls: readonly string[]
  maxLifetimeMs: number
  /** Epoch milliseconds. */
  now: number
}

/**
 * Checks a request's Web Bot Auth headers without verifying the signature by its key (RFC 9421,
 * draft-meunier-web-bot-auth-architecture). Returns undefined without such headers, and the first valid one of several
 * signatures.
 */
export function checkSignature(
  request: ReceivedRequest,
  rules: SignatureRules,
): CheckedSignature | undefined {
  const results = readSignatures(request, rules.baseUrls)
  if (!Array.isArray(results)) return results
  const checked = results.map((item) => (item.status === 'signed' ? checkTimes(item, rules) : item))
  const rank = ({ status }: CheckedSignature) =>
    ['signed', 'unknown_key', 'invalid'].indexOf(status)
  return checked.sort((a, b) => rank(a) - rank(b))[0] ?? invalid('tag')
}

function checkTimes(
  checked: CheckedSignature & { status: 'signed' },
  rules: SignatureRules,
): CheckedSignature {
  const problem = lifetimeProblem(checked.signature, rules)
  return problem ? invalid(problem) : checked
}

const skewMs = 60_000

export function lifetimeProblem(
  { createdAt, expiresAt }: Pick<AgentSignature, 'createdAt' | 'expiresAt'>,
  { maxLifetimeMs, now }: Pick<SignatureRules, 'maxLifetimeMs' | 'now'>,
): InvalidSignature | undefined {
  const lifetimeMs = expiresAt - createdAt
  if (lifetimeMs > maxLifetimeMs || lifetimeMs <= 0) return 'lifetime'
  if (createdAt > now + skewMs) return 'not_yet_valid'
  return expiresAt < now - skewMs ? 'expired' : undefined
}

/** Reads the signatures tagged for Web Bot Auth without checking their times, or returns why none can be read. */
export function readSignatures(
  request: ReceivedRequest,
  baseUrls: readonly string[],
): CheckedSignature[] | CheckedSignature | undefined {
  const [input, signature, agent] = signatureHeaders.map((name) => fieldValue(request, name))
  if (input === undefined && signature === undefined && agent === undefined) return undefined
  if (input === undefined || signature === undefined || agent === undefined)
    return { status: 'absent' }
  const fields = signatureFields(input, signature)
  const agents = readSignatureAgents(agent)
  if (!fields || !agents) return invalid('malformed')
  const botFields = fields.filter((field) => field.input[1].get('tag') === 'web-bot-auth')
  const message = { request, baseUrls, fields: readFields(request) }
  return botFields.map((field) => readSignature(message, { field, agents }))
}

const signatureHeaders = ['signature-input', 'signature', 'signature-agent']

function readSignature(
  message: SignedMessage,
  { field, agents }: { field: SignatureField; agents: SignatureAgents },
): CheckedSignature {
  const { input, bytes } = field
  const component = coveredAgent(input, agents)
  if (!component || !coversTarget(input)) return invalid('coverage')
  const { url, type } = agentOf(component, field, agents) ?? {}
  if (!url) return invalid('agent')
  if (!isEd25519(field)) return { status: 'unknown_key', reason: 'algorithm' }
  if (type !== 'directory') return { status: 'unknown_key', reason: 'directory_type' }
  const parsed = parametersOf(field)
  if (!parsed) return invalid('parameters')
  if (input[0].some(isStandardButUnsupported)) return { status: 'unknown_key', reason: 'component' }
  const bases = signatureBases(message, input)
  if (bases.length === 0) return invalid('component')
  const directory = directoryOf(url.host)
  return { status: 'signed', signature: { agent: url.host, directory, bases, bytes, ...parsed } }
}

const invalid = (reason: InvalidSignature): CheckedSignature => ({ status: 'invalid', reason })

// Ignores components with parameters, which refer to another message.
const coversTarget = ([components]: InnerList): boolean =>
  components.some(
    ([name, { size }]) => size === 0 && (name === '@authority' || name === '@target-uri'),
  )

function coveredAgent([components]: InnerList, { form }: SignatureAgents): Item | undefined {
  const covered = components.filter(([name]) => name === 'signature-agent')
  return covered.find(([, parameters]) => form === 'dictionary' || parameters.size === 0)
}

// Returns the covered agent. Without `key`, the entire dictionary is covered: then the agent is the member with the
// signature's label, or the only member.
function agentOf(
  [, parameters]: Item,
  { label }: SignatureField,
  agents: SignatureAgents,
): AgentUrl | undefined {
  if (agents.form === 'string') return agents.url
  const { urls } = agents
  const key = parameters.get('key')
  if (key !== undefined) return urls.get(String(key))
  return urls.get(label) ?? (urls.size === 1 ? [...urls.values()][0] : undefined)
}

// Checks the length too, because RSA signatures, which are longer, often omit `alg`.
function isEd25519({ input: [, parameters], bytes }: SignatureField): boolean {
  return (parameters.get('alg') ?? 'ed25519') === 'ed25519' && bytes.length === 64
}

type Parsed = Pick<AgentSignature, 'keyId' | 'createdAt' | 'expiresAt' | 'nonceHash'>

function parametersOf({ input: [, parameters], bytes }: SignatureField): Parsed | undefined {
  const [created, expires, keyId] = ['created', 'expires', 'keyid'].map((name) =>
    parameters.get(name),
  )
  if (typeof keyId !== 'string' || !Number.isInteger(created) || !Number.isInteger(expires))
    return undefined
  const nonce = parameters.get('nonce')
  const uniqueText = typeof nonce === 'string' ? nonce : bytes.toString('base64')
  const nonceHash = createHash('sha256').update(`${keyId}\n${uniqueText}`).digest('hex')
  return { keyId, createdAt: Number(created) * 1000, expiresAt: Number(expires) * 1000, nonceHash }
}
