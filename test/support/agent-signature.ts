import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from 'node:crypto'

export interface AgentKey {
  privateKey: KeyObject
  /** JWK in the key directory. */
  jwk: { kty: 'OKP'; crv: 'Ed25519'; x: string }
  keyId: string
}

export function createAgentKey(): AgentKey {
  return agentKeyOf(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }))
}

export function agentKeyOf({ x = '', d = '' }: { x?: string; d?: string }): AgentKey {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x } as const
  const keyId = createHash('sha256')
    .update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`)
    .digest('base64url')
  return { jwk, keyId, privateKey: createPrivateKey({ key: { ...jwk, d }, format: 'jwk' }) }
}

/** Returns the cached key of a directory that does not restrict it. */
export const directoryKeysOf = ({ keyId, jwk: { x } }: AgentKey) => ({
  [keyId]: { x, starts_at: null, ends_at: null },
})

export interface SignedWith {
  key: AgentKey
  /** Lines of the signature base in order: component with parameters, and value. */
  lines: [string, string][]
  /** Epoch seconds. */
  created: number
  expires?: number
  nonce?: string | undefined
  tag?: string
  label?: string
  /** Additional parameters, such as `;alg="ed25519"`. */
  more?: string
}

/** Signs from the text of RFC 9421 alone, so that the verifier is not tested against itself. */
export function agentSignature({
  key,
  lines,
  label = 'sig1',
  ...given
}: SignedWith): Record<string, string> {
  const { created, expires = created + 300, nonce, tag = 'web-bot-auth', more = '' } = given
  const covered = lines.map(([component]) => component).join(' ')
  const once = nonce === undefined ? '' : `;nonce="${nonce}"`
  const input = `(${covered});created=${created};expires=${expires};keyid="${key.keyId}"${once}${more};tag="${tag}"`
  const base = [...lines, ['"@signature-params"', input]].map((line) => line.join(': ')).join('\n')
  const bytes = sign(null, Buffer.from(base), key.privateKey).toString('base64')
  return { 'Signature-Input': `${label}=${input}`, Signature: `${label}=:${bytes}:` }
}
