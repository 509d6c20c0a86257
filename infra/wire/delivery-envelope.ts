import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto'
import { z } from 'zod'
import type { Random } from '../ids.ts'
import { wireNames } from './names.ts'

export const deliveryAlgorithm = 'x25519-hkdf-sha256/aes-256-gcm'

// Schema of canonical base64url without padding.
const base64url = (bytes: number) =>
  z
    .string()
    .length(Math.ceil((bytes * 4) / 3))
    .refine((text) => Buffer.from(text, 'base64url').toString('base64url') === text, {
      error: `base64url of ${bytes} bytes`,
    })
    .meta({ pattern: '^[A-Za-z0-9_-]+$' })

export const deliveryRequestSchema = z
  .strictObject({
    version: z.literal(1),
    algorithm: z.literal(deliveryAlgorithm),
    key_id: base64url(32).describe('SHA-256 of the raw public key, base64url.'),
    public_key: base64url(32).describe('Raw X25519 public key, base64url.'),
  })
  .meta({ id: 'GateDeliveryRequest' })
export type DeliveryRequest = z.output<typeof deliveryRequestSchema>

const maxCiphertext = 64 * 1024

/** Schema that drops unknown members, which a later version may add. */
export const deliveryEnvelopeSchema = z
  .object({
    version: z.literal(1),
    algorithm: z.literal(deliveryAlgorithm),
    key_id: base64url(32),
    ephemeral_public_key: base64url(32),
    salt: base64url(32),
    iv: base64url(12),
    ciphertext: z
      .string()
      .min(1)
      .max(maxCiphertext)
      .regex(/^[A-Za-z0-9_-]+$/),
    tag: base64url(16),
  })
  .meta({ id: 'GateDeliveryEnvelope' })
export type DeliveryEnvelope = z.output<typeof deliveryEnvelopeSchema>

const deliveryPayloadSchema = z.object({
  version: z.literal(1),
  outputs: z.record(z.string(), z.string()),
  ack_token: z.string().optional(),
})
export type DeliveryPayload = z.output<typeof deliveryPayloadSchema>

/** Thrown for an envelope that was sealed to another key or modified. */
export class UnreadableEnvelope extends Error {
  override name = 'UnreadableEnvelope'
}

export interface DeliveryKeys {
  privateKey: KeyObject
  delivery: DeliveryRequest
}

export function generateDeliveryKeys(): DeliveryKeys {
  const { privateKey, publicKey } = generateKeyPairSync('x25519')
  const raw = rawKey(publicKey)
  return {
    privateKey,
    delivery: {
      version: 1,
      algorithm: deliveryAlgorithm,
      key_id: deliveryKeyId(raw),
      public_key: encoded(raw),
    },
  }
}

/** Returns the key id: base64url of the SHA-256 of the raw public key. */
export function deliveryKeyId(publicKey: Uint8Array): string {
  return createHash('sha256').update(publicKey).digest('base64url')
}

/** Returns false for low-order points, whose shared secret is predictable (RFC 7748, section 6.1). */
export function isUsablePublicKey(publicKey: string): boolean {
  try {
    const { privateKey } = generateKeyPairSync('x25519')
    diffieHellman({ privateKey, publicKey: publicKeyOf(publicKey) })
    return true
  } catch {
    return false
  }
}

/**
 * Encrypts the payload to a public key: X25519 with an ephemeral key, HKDF-SHA256 with a 32-byte salt, and AES-256-GCM
 * without AAD. Published clients read this format (test/fixtures/gate-delivery/vector.v1.json).
 */
export function sealEnvelope(
  payload: DeliveryPayload,
  {
    delivery,
    random,
  }: { delivery: Pick<DeliveryRequest, 'key_id' | 'public_key'>; random: Random },
): DeliveryEnvelope {
  const ephemeral = generateKeyPairSync('x25519')
  const secret = diffieHellman({
    privateKey: ephemeral.privateKey,
    publicKey: publicKeyOf(delivery.public_key),
  })
  const [salt, iv] = [random(32), random(12)]
  const cipher = createCipheriv('aes-256-gcm', keyFrom(secret, salt), iv)
  const ciphertext = Buffer.concat([cipher.update(JSON.stringify(payload), 'utf8'), cipher.final()])
  return {
    version: 1,
    algorithm: deliveryAlgorithm,
    key_id: delivery.key_id,
    ephemeral_public_key: encoded(rawKey(ephemeral.publicKey)),
    salt: encoded(salt),
    iv: encoded(iv),
    ciphertext: encoded(ciphertext),
    tag: encoded(cipher.getAuthTag()),
  }
}

/** Decrypts the payload. Throws UnreadableEnvelope if the key can't open the envelope. */
export function openEnvelope(envelope: DeliveryEnvelope, privateKey: KeyObject): DeliveryPayload {
  try {
    const bytes = (text: string) => Buffer.from(text, 'base64url')
    const publicKey = publicKeyOf(envelope.ephemeral_public_key)
    const key = keyFrom(diffieHellman({ privateKey, publicKey }), bytes(envelope.salt))
    const decipher = createDecipheriv('aes-256-gcm', key, bytes(envelope.iv))
    decipher.setAuthTag(bytes(envelope.tag))
    const plaintext = Buffer.concat([decipher.update(bytes(envelope.ciphertext)), decipher.final()])
    return deliveryPayloadSchema.parse(JSON.parse(plaintext.toString('utf8')))
  } catch (cause) {
    throw new UnreadableEnvelope('The envelope cannot be opened with this key.', { cause })
  }
}

function keyFrom(secret: Buffer, salt: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, wireNames.gateDeliveryInfo, 32))
}

function publicKeyOf(raw: string): KeyObject {
  return createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: raw }, format: 'jwk' })
}

function rawKey(publicKey: KeyObject): Buffer {
  return Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
}

const encoded = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')
