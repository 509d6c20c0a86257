import { createHash } from 'node:crypto'
import type { InnerList, Item } from 'structured-headers'
import { isUnread, type SignedMessage, signatureBases } from './base.ts'
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

/** A signature that is as it should be, as far as one can tell without its key. */
export interface RequestSignature {
  /** Host of the agent's directory, with its port unless that is the usual one. */
  agent: string
  /** Where its keys are. */
  directory: string
  /** Thumbprint of the key. */
  keyId: string
  /** What may have been signed: one for each address of this installation. */
  bases: string[]
  bytes: Buffer
  /** Epoch milliseconds. */
  createdAt: number
  expiresAt: number
  /** Hex: of key and nonce, or of the signature where it has no nonce. It is good for one request. */
  nonceHash: string
}

/**
 * malformed: a header is not what its standard says; tag: none is for Web Bot Auth; agent: Signature-Agent names no https
 * address; coverage: neither `@authority` nor `@target-uri` is covered, or `signature-agent` is not; component: a covered
 * one is missing or of no kind that there is; parameters: `created`, `expires` or `keyid` is missing; lifetime: longer than allowed.
 */
export type InvalidSignature =
  | ('malformed' | 'tag' | 'agent' | 'coverage' | 'component' | 'parameters')
  | ('lifetime' | 'not_yet_valid' | 'expired')

/** absent: one of the three headers is missing. algorithm: not Ed25519. directory_type: not a directory, such as a card. component: of a kind not read here. */
export type CheckedSignature =
  | { status: 'absent' }
  | { status: 'invalid'; reason: InvalidSignature }
  | { status: 'unknown_key'; reason: 'algorithm' | 'directory_type' | 'component' }
  | { status: 'signed'; signature: RequestSignature }

export interface SignatureRules {
  /** Addresses of this installation, as clients know them. Nothing that the request says of its host counts. */
  baseUrls: readonly string[]
  maxLifetimeMs: number
  /** Epoch milliseconds. */
  now: number
}

/**
 * Checks a request's Web Bot Auth headers but for the key (RFC 9421, draft-meunier-web-bot-auth-architecture). Undefined
 * where it has none of them. Of several signatures the first is taken that is as it should be.
 */
export function checkSignature(
  request: ReceivedRequest,
  rules: SignatureRules,
): CheckedSignature | undefined {
  const read = readSignatures(request, rules.baseUrls)
  if (!Array.isArray(read)) return read
  const checked = read.map((one) => (one.status === 'signed' ? checkTimes(one, rules) : one))
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
  { createdAt, expiresAt }: Pick<RequestSignature, 'createdAt' | 'expiresAt'>,
  { maxLifetimeMs, now }: Pick<SignatureRules, 'maxLifetimeMs' | 'now'>,
): InvalidSignature | undefined {
  const lifetimeMs = expiresAt - createdAt
  if (lifetimeMs > maxLifetimeMs || lifetimeMs <= 0) return 'lifetime'
  if (createdAt > now + skewMs) return 'not_yet_valid'
  return expiresAt < now - skewMs ? 'expired' : undefined
}

/** The signatures with the tag of Web Bot Auth, whatever the time is; or why none can be read. */
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
  const tagged = fields.filter((field) => field.input[1].get('tag') === 'web-bot-auth')
  const message = { request, baseUrls, fields: readFields(request) }
  return tagged.map((field) => readSignature(message, { field, agents }))
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
  const named = parametersOf(field)
  if (!named) return invalid('parameters')
  if (input[0].some(isUnread)) return { status: 'unknown_key', reason: 'component' }
  const bases = signatureBases(message, input)
  if (bases.length === 0) return invalid('component')
  const directory = directoryOf(url.host)
  return { status: 'signed', signature: { agent: url.host, directory, bases, bytes, ...named } }
}

const invalid = (reason: InvalidSignature): CheckedSignature => ({ status: 'invalid', reason })

// With parameters they would be parts of another message.
const coversTarget = ([components]: InnerList): boolean =>
  components.some(
    ([name, { size }]) => size === 0 && (name === '@authority' || name === '@target-uri'),
  )

function coveredAgent([components]: InnerList, { form }: SignatureAgents): Item | undefined {
  const covered = components.filter(([name]) => name === 'signature-agent')
  return covered.find(([, parameters]) => form === 'dictionary' || parameters.size === 0)
}

// Without a key all of the dictionary is covered. Then the member counts that has the signature's label, or the only one.
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

// What is signed by RSA is longer, and may say so only by its key.
function isEd25519({ input: [, parameters], bytes }: SignatureField): boolean {
  return (parameters.get('alg') ?? 'ed25519') === 'ed25519' && bytes.length === 64
}

type Named = Pick<RequestSignature, 'keyId' | 'createdAt' | 'expiresAt' | 'nonceHash'>

function parametersOf({ input: [, parameters], bytes }: SignatureField): Named | undefined {
  const [created, expires, keyId] = ['created', 'expires', 'keyid'].map((name) =>
    parameters.get(name),
  )
  if (typeof keyId !== 'string' || !Number.isInteger(created) || !Number.isInteger(expires))
    return undefined
  const nonce = parameters.get('nonce')
  const once = typeof nonce === 'string' ? nonce : bytes.toString('base64')
  const nonceHash = createHash('sha256').update(`${keyId}\n${once}`).digest('hex')
  return { keyId, createdAt: Number(created) * 1000, expiresAt: Number(expires) * 1000, nonceHash }
}
