import {
  createHash,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  X509Certificate,
} from 'node:crypto'
import type { Extension } from '@peculiar/asn1-x509'
import { encode } from 'cborg'
import { CompactEncrypt, CompactSign } from 'jose'
import { basicConstraints, extension, makeCertificate } from './tls-certificates.ts'

// Attestations as devices of Apple and Google send them, under a test root. Written from the published specifications,
// without code that verifies attestations.

const day = 24 * 60 * 60 * 1000

export const makeKeys = () => generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
type Keys = ReturnType<typeof makeKeys>

export interface Authority {
  subject: string
  certificate: Buffer
  keys: Keys
}

interface Certified {
  subject: string
  keys: Keys
  by?: Authority | undefined
  isAuthority?: boolean
  from?: number
  until?: number
  extensions?: Extension[]
}

const spkiOf = (key: KeyObject) => key.export({ type: 'spki', format: 'der' })

/** Issues a certificate, self-signed or by another authority. */
export function certify({ subject, keys, by, isAuthority = true, ...of }: Certified): Authority {
  const { from = Date.now() - day, until = Date.now() + day, extensions = [] } = of
  const certificate = makeCertificate({
    subject,
    issuer: by?.subject ?? subject,
    publicKey: keys.publicKey,
    signer: (by?.keys ?? keys).privateKey,
    notBefore: new Date(from),
    notAfter: new Date(until),
    extensions: [basicConstraints(isAuthority), ...extensions],
  })
  return { subject, keys, certificate }
}

export interface Apple {
  root: X509Certificate
  pem: string
  /** The root, with its keys. */
  top: Authority
  authority: Authority
}

/** Creates an App Attest authority below a root. */
export function createApple(some: Pick<Certified, 'from' | 'until'> = {}): Apple {
  const top = certify({ subject: 'Root', keys: makeKeys(), ...some })
  const authority = certify({ subject: 'Authority', keys: makeKeys(), by: top, ...some })
  const root = new X509Certificate(top.certificate)
  return { root, pem: root.toString(), top, authority }
}

const sha256 = (...parts: (Uint8Array | string)[]) =>
  parts.reduce((digest, part) => digest.update(part), createHash('sha256')).digest()

/** Returns the document hash as a device computes it. */
export const hashOfDocument = (challenge: string, clientPublicKey: string, keyId: string): Buffer =>
  sha256(Buffer.from(`${challenge}\n${clientPublicKey}\n${keyId}`))

export interface DeviceKey {
  keys: Keys
  keyId: string
}

export function createDeviceKey(): DeviceKey {
  const keys = makeKeys()
  // SPKI of P-256 ends with the point.
  return { keys, keyId: sha256(spkiOf(keys.publicKey).subarray(-65)).toString('base64') }
}

export interface AttestOptions {
  apple: Apple
  key: DeviceKey
  appId: string
  /** clientDataHash */
  hash: Buffer
  isDevelopment?: boolean
  counter?: number
  /** Replaces the computation of the nonce. */
  nonceOf?: (authData: Buffer, hash: Buffer) => Buffer
  /** Replaces the certificates that are sent. */
  x5cOf?: (leaf: Authority) => Authority[]
  credentialId?: Buffer
  from?: number
  until?: number
}

export function appAttestation(options: AttestOptions): Buffer {
  const { apple, key, appId, hash, isDevelopment = false, counter = 0, from, until } = options
  const { nonceOf = sha256, x5cOf = (leaf: Authority) => [leaf, apple.authority] } = options
  const id = options.credentialId ?? Buffer.from(key.keyId, 'base64')
  const environment = isDevelopment
    ? Buffer.from('appattestdevelop')
    : Buffer.concat([Buffer.from('appattest'), Buffer.alloc(7)])
  const authData = Buffer.concat([
    sha256(appId),
    Buffer.of(0x40),
    u32(counter),
    environment,
    Buffer.of(0, id.length),
    id,
    encode({ 1: 2, 3: -7 }),
  ])
  const der = Buffer.concat([Buffer.from('3024a1220420', 'hex'), nonceOf(authData, hash)])
  const leaf = certify({
    subject: 'Device',
    keys: key.keys,
    by: apple.authority,
    isAuthority: false,
    extensions: [extension('1.2.840.113635.100.8.2', der)],
    ...(from !== undefined && { from }),
    ...(until !== undefined && { until }),
  })
  const x5c = x5cOf(leaf).map(({ certificate }) => certificate)
  return Buffer.from(
    encode({ fmt: 'apple-appattest', attStmt: { x5c, receipt: new Uint8Array(0) }, authData }),
  )
}

interface AssertOptions {
  key: DeviceKey
  appId: string
  hash: Buffer
  counter: number
  nonceOf?: (authData: Buffer, hash: Buffer) => Buffer
}

export function appAssertion({
  key,
  appId,
  hash,
  counter,
  nonceOf = sha256,
}: AssertOptions): Buffer {
  const authenticatorData = Buffer.concat([sha256(appId), Buffer.of(0x40), u32(counter)])
  const signature = sign('sha256', nonceOf(authenticatorData, hash), key.keys.privateKey)
  return Buffer.from(encode({ signature, authenticatorData }))
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

export interface Google {
  /** Key as shown by the Play Console. */
  decryption_key: string
  verification_key: string
  sign: KeyObject
  encrypt: KeyObject
}

export function createGoogle(): Google {
  const { publicKey, privateKey } = makeKeys()
  const aes = Buffer.from(crypto.getRandomValues(new Uint8Array(32)))
  return {
    decryption_key: aes.toString('base64'),
    verification_key: spkiOf(publicKey).toString('base64'),
    sign: privateKey,
    encrypt: createSecretKey(aes),
  }
}

/** Returns the verdict of a genuine device, with overrides. */
export function playVerdict(packageName: string, hash: Buffer, some: object = {}): object {
  return {
    requestDetails: {
      requestPackageName: packageName,
      nonce: hash.toString('base64url'),
      timestampMillis: String(Date.now()),
    },
    appIntegrity: { appRecognitionVerdict: 'PLAY_RECOGNIZED', packageName, versionCode: '42' },
    deviceIntegrity: { deviceRecognitionVerdict: ['MEETS_DEVICE_INTEGRITY'] },
    accountDetails: { appLicensingVerdict: 'LICENSED' },
    ...some,
  }
}

export async function playToken(
  verdict: unknown,
  { sign, encrypt }: Pick<Google, 'sign' | 'encrypt'>,
): Promise<string> {
  const signed = await new CompactSign(Buffer.from(JSON.stringify(verdict)))
    .setProtectedHeader({ alg: 'ES256' })
    .sign(sign)
  return new CompactEncrypt(Buffer.from(signed))
    .setProtectedHeader({ alg: 'A256KW', enc: 'A256GCM' })
    .encrypt(encrypt)
}
