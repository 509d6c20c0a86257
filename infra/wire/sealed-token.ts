import { createCipheriv, createDecipheriv, createHash, createSecretKey } from 'node:crypto'
import { deflateSync, inflateSync } from 'node:zlib'
import { secretHashOf } from '../crypto/api-keys.ts'
import type { Random } from '../ids.ts'
import { wireNames } from './names.ts'

// Version 2, big-endian, base64:
//   0x02 | recipient count u16 | nonce 12 | ciphertext length u32 | ciphertext | tag 16
//   then per recipient: id 32 | nonce 12 | wrapped content key 32 | tag 16
// Version 1, read only: 0x01 | nonce 12 | ciphertext | tag 16, one recipient and no AAD.
const nonceBytes = 12
const tagBytes = 16
const keyBytes = 32
const idBytes = 32
const headerBytes = 1 + 2 + nonceBytes + 4
const recipientBytes = idBytes + nonceBytes + keyBytes + tagBytes
const maxPayloadBytes = 4 * 1024 * 1024

export const maxRecipients = 256

/** Thrown for a token that was not sealed to this key or was modified. */
export class UnreadableToken extends Error {
  override name = 'UnreadableToken'
}

/** Encrypts a payload to secret keys. `secretHashes`: SHA-256 of 1 to 256 secret keys, in lower-case hex. */
export function sealToken(options: {
  payload: unknown
  secretHashes: string[]
  random: Random
}): string {
  const { payload, secretHashes, random } = options
  if (secretHashes.length < 1 || secretHashes.length > maxRecipients) {
    throw new RangeError(
      `a sealed token has 1 to ${maxRecipients} recipients, not ${secretHashes.length}`,
    )
  }
  const contentKey = random(keyBytes)
  const plaintext = deflateSync(JSON.stringify(payload))
  const header = headerOf({
    count: secretHashes.length,
    nonce: random(nonceBytes),
    length: plaintext.length,
  })
  const ids = secretHashes.map(recipientId)
  const sealed = encrypt(plaintext, {
    key: contentKey,
    nonce: nonceOf(header),
    aad: payloadAad(header, ids),
  })
  const recipients = secretHashes.map((hash) =>
    wrap(contentKey, { hash, nonce: random(nonceBytes) }),
  )
  return Buffer.concat([header, sealed, ...recipients]).toString('base64')
}

/** Decrypts the payload. Throws UnreadableToken if the key can't open the token. */
export function openToken(
  token: string,
  key: { secretKey: string } | { secretHash: string },
): unknown {
  const bytes = Buffer.from(token, 'base64')
  const hash = 'secretHash' in key ? key.secretHash.toLowerCase() : secretHashOf(key.secretKey)
  try {
    const plaintext = bytes[0] === 1 ? openVersion1(bytes, hash) : openVersion2(bytes, hash)
    return JSON.parse(inflateSync(plaintext, { maxOutputLength: maxPayloadBytes }).toString('utf8'))
  } catch (cause) {
    throw new UnreadableToken('The sealed token cannot be opened with this key.', { cause })
  }
}

function openVersion1(bytes: Buffer, hash: string): Buffer {
  const nonce = bytes.subarray(1, 1 + nonceBytes)
  return decrypt(bytes.subarray(1 + nonceBytes), { key: tokenKey(hash), nonce })
}

function openVersion2(bytes: Buffer, hash: string): Buffer {
  const { header, sealed, recipients } = split(bytes)
  const id = recipientId(hash)
  const entry = recipients.find((recipient) => recipient.subarray(0, idBytes).equals(id))
  if (!entry) throw new Error('not a recipient')
  const key = decrypt(entry.subarray(idBytes + nonceBytes), {
    key: tokenKey(hash),
    nonce: entry.subarray(idBytes, idBytes + nonceBytes),
    aad: recipientAad(id),
  })
  const ids = recipients.map((recipient) => recipient.subarray(0, idBytes))
  return decrypt(sealed, { key, nonce: nonceOf(header), aad: payloadAad(header, ids) })
}

function split(bytes: Buffer): { header: Buffer; sealed: Buffer; recipients: Buffer[] } {
  if (bytes[0] !== 2 || bytes.length < headerBytes) throw new Error('unknown version')
  const count = bytes.readUInt16BE(1)
  const sealedEnd = headerBytes + bytes.readUInt32BE(1 + 2 + nonceBytes) + tagBytes
  if (count < 1 || count > maxRecipients) throw new Error('recipient count out of range')
  if (bytes.length !== sealedEnd + count * recipientBytes) throw new Error('length does not add up')
  const recipients = Array.from({ length: count }, (_, index) => {
    const start = sealedEnd + index * recipientBytes
    return bytes.subarray(start, start + recipientBytes)
  })
  return {
    header: bytes.subarray(0, headerBytes),
    sealed: bytes.subarray(headerBytes, sealedEnd),
    recipients,
  }
}

function headerOf({
  count,
  nonce,
  length,
}: {
  count: number
  nonce: Buffer
  length: number
}): Buffer {
  const header = Buffer.alloc(headerBytes)
  header.writeUInt8(2, 0)
  header.writeUInt16BE(count, 1)
  nonce.copy(header, 3)
  header.writeUInt32BE(length, 3 + nonceBytes)
  return header
}

function nonceOf(header: Buffer): Buffer {
  return header.subarray(3, 3 + nonceBytes)
}

function wrap(contentKey: Buffer, { hash, nonce }: { hash: string; nonce: Buffer }): Buffer {
  const id = recipientId(hash)
  const wrapped = encrypt(contentKey, { key: tokenKey(hash), nonce, aad: recipientAad(id) })
  return Buffer.concat([id, nonce, wrapped])
}

function tokenKey(hash: string): Buffer {
  return createHash('sha256').update(`${hash}\0${wireNames.sealedTokenKeyLabel}`).digest()
}

function recipientId(hash: string): Buffer {
  return createHash('sha256').update(`${hash}\0${wireNames.sealedTokenRecipientLabel}`).digest()
}

function recipientAad(id: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${wireNames.sealedTokenAad}\0recipient\0`), id])
}

function payloadAad(header: Buffer, ids: Buffer[]): Buffer {
  return Buffer.concat([Buffer.from(`${wireNames.sealedTokenAad}\0payload\0`), header, ...ids])
}

interface Cipher {
  key: Buffer
  nonce: Buffer
  aad?: Buffer
}

// Encrypts with AES-256-GCM and appends the tag.
function encrypt(plaintext: Buffer, { key, nonce, aad }: Cipher): Buffer {
  // A key object is several times faster than bytes.
  const cipher = createCipheriv('aes-256-gcm', createSecretKey(key), nonce)
  if (aad) cipher.setAAD(aad)
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

function decrypt(sealed: Buffer, { key, nonce, aad }: Cipher): Buffer {
  if (sealed.length < tagBytes) throw new Error('too short')
  const decipher = createDecipheriv('aes-256-gcm', key, nonce)
  if (aad) decipher.setAAD(aad)
  decipher.setAuthTag(sealed.subarray(-tagBytes))
  return Buffer.concat([decipher.update(sealed.subarray(0, -tagBytes)), decipher.final()])
}
