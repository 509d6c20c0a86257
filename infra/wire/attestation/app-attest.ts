import { createHash, hash, type KeyObject, verify, X509Certificate } from 'node:crypto'
import { AsnConvert } from '@peculiar/asn1-schema'
import { Certificate } from '@peculiar/asn1-x509'
import { decode, Tokenizer } from 'cborg'
import { z } from 'zod'
import { orUndefined } from '../../text.ts'

/** Reasons for rejecting an attestation. `malformed`: not in Apple's or Google's format. */
type AttestationProblem =
  | 'malformed'
  | 'certificates'
  | 'nonce'
  | 'key'
  | 'app'
  | 'environment'
  | 'signature'
  | 'counter'
  | 'time'
  | 'device'

interface Expected {
  /** App ids that are accepted, such as `TEAMID1234.com.example.app`. */
  appIds: readonly string[]
  clientDataHash: Buffer
}

export interface ExpectedKey extends Expected {
  keyId: string
  root: X509Certificate
  /** Time at which the certificates must be valid, epoch milliseconds. */
  at: number
  /** Also accepts development builds, as Xcode installs them. */
  allowsDevelopment: boolean
}

export interface ExpectedAssertion extends Expected {
  /** The attested key (SPKI, DER). */
  publicKey: KeyObject
}

/** Result for a rejected attestation. */
export interface Rejection {
  problem: AttestationProblem
}

const bytes = z.instanceof(Uint8Array).transform((array) => Buffer.from(array))
const attestationObject = z.object({
  fmt: z.literal('apple-appattest'),
  attStmt: z.object({ x5c: z.array(bytes).max(8) }),
  authData: bytes,
})
const assertionObject = z.object({ signature: bytes, authenticatorData: bytes })

const sha256 = (...parts: Uint8Array[]): Buffer => {
  const digest = createHash('sha256')
  for (const part of parts) digest.update(part)
  return digest.digest()
}

/** Verifies an attestation. Returns the attested public key (SPKI, DER, base64) and its app. Never throws. */
export function verifyAppAttest(
  sent: Buffer,
  expected: ExpectedKey,
): { publicKey: string; appId: string } | Rejection {
  return orMalformed(() => {
    const { attStmt, authData } = attestationObject.parse(decodeLimited(sent))
    const { keyId, clientDataHash } = expected
    const leaf = attestedCertificate(attStmt.x5c, expected)
    if (!leaf) return { problem: 'certificates' }
    if (!nonceIn(leaf)?.equals(nonceExtension(sha256(authData, clientDataHash))))
      return { problem: 'nonce' }
    const { appHash, counter, environment, credentialId } = readAttested(authData)
    const keyHash = sha256(pointOf(leaf.publicKey))
    const idMatches = [credentialId, Buffer.from(keyId, 'base64')].every((id) => id.equals(keyHash))
    if (!idMatches) return { problem: 'key' }
    const appId = appOf(appHash, expected)
    if (appId === undefined) return { problem: 'app' }
    if (!environmentsOf(expected).some((allowed) => allowed.equals(environment)))
      return { problem: 'environment' }
    if (counter !== 0) return { problem: 'counter' }
    return {
      publicKey: leaf.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
      appId,
    }
  })
}

/** Verifies an assertion. The caller must check that the returned counter has increased. Never throws. */
export function verifyAppAssertion(
  sent: Buffer,
  expected: ExpectedAssertion,
): { counter: number; appId: string } | Rejection {
  return orMalformed(() => {
    const { signature, authenticatorData } = assertionObject.parse(decodeLimited(sent))
    const nonce = sha256(authenticatorData, expected.clientDataHash)
    if (!verify('sha256', nonce, expected.publicKey, signature)) return { problem: 'signature' }
    const appId = appOf(authenticatorData.subarray(0, appHashBytes), expected)
    if (appId === undefined) return { problem: 'app' }
    return { counter: authenticatorData.readUInt32BE(appHashBytes + 1), appId }
  })
}

// Apple's objects have about a dozen CBOR items. Thousands of nested items would take a tenth of a second.
const maxItems = 64

// Decodes CBOR. Throws if it has more than `maxItems` items.
function decodeLimited(sent: Buffer): unknown {
  const tokenizer = new Tokenizer(sent)
  let items = 0
  const next = () => {
    if (++items > maxItems) throw new Error('too many items')
    return tokenizer.next()
  }
  const [done, pos] = [() => tokenizer.done(), () => tokenizer.pos()]
  return decode(sent, { tokenizer: { next, done, pos } })
}

function orMalformed<T>(read: () => T | Rejection): T | Rejection {
  return orUndefined(read) ?? { problem: 'malformed' }
}

// Returns the key's certificate if the chain is valid: that certificate, and a CA certificate that the root issued.
function attestedCertificate(
  x5c: Buffer[],
  { root, at }: Pick<ExpectedKey, 'root' | 'at'>,
): X509Certificate | undefined {
  const [leaf, authority, ...extra] = x5c.map((raw) => new X509Certificate(raw))
  if (!leaf || !authority || extra.length > 0) return undefined
  const haveCaFlags = !leaf.ca && authority.ca && root.ca
  const areValid = [leaf, authority, root].every(
    ({ validFrom, validTo }) => Date.parse(validFrom) <= at && at <= Date.parse(validTo),
  )
  return haveCaFlags && areValid && isIssuedBy(leaf, authority) && isIssuedBy(authority, root)
    ? leaf
    : undefined
}

const isIssuedBy = (certificate: X509Certificate, issuer: X509Certificate) =>
  certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)

const nonceOid = '1.2.840.113635.100.8.2'

function nonceIn({ raw }: X509Certificate): Buffer | undefined {
  const { extensions = [] } = AsnConvert.parse(raw, Certificate).tbsCertificate
  const extension = extensions.find(({ extnID }) => extnID === nonceOid)
  return extension && Buffer.from(extension.extnValue.buffer)
}

// Encodes the extension's only possible DER form: a sequence of one octet string with the tag 1.
const nonceExtension = (nonce: Buffer) => Buffer.concat([Buffer.from('3024a1220420', 'hex'), nonce])

// Returns the uncompressed point of a P-256 key. Throws for other keys.
function pointOf(key: KeyObject): Buffer {
  const { crv, x = '', y = '' } = key.export({ format: 'jwk' })
  if (crv !== 'P-256') throw new Error('not a key on P-256')
  return Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
}

// SHA-256 of the app's id 32 | flags 1 | counter u32 | environment 16 | length u16 | credential id | its key
const appHashBytes = 32
const attestedBytes = appHashBytes + 1 + 4 + 16 + 2

function readAttested(authData: Buffer) {
  const length = authData.readUInt16BE(attestedBytes - 2)
  return {
    appHash: authData.subarray(0, appHashBytes),
    counter: authData.readUInt32BE(appHashBytes + 1),
    environment: authData.subarray(appHashBytes + 5, attestedBytes - 2),
    credentialId: authData.subarray(attestedBytes, attestedBytes + length),
  }
}

const appOf = (appHash: Buffer, { appIds }: Expected): string | undefined =>
  appIds.find((id) => hash('sha256', id, 'hex') === appHash.toString('hex'))

const production = Buffer.concat([Buffer.from('appattest'), Buffer.alloc(7)])
const development = Buffer.from('appattestdevelop')

const environmentsOf = ({ allowsDevelopment }: Pick<ExpectedKey, 'allowsDevelopment'>) =>
  allowsDevelopment ? [production, development] : [production]
