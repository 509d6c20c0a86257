import { createHash, createHmac } from 'node:crypto'
import type { Environment, KeyType } from '../../schemas/events.ts'
import { base32Characters, checksum, type KeyId, type Random } from '../ids.ts'
import type { Keyring } from './keyring.ts'
import { open, seal } from './sealing.ts'

// sk_live_ | 32 random characters (160 bits) | 6 checksum characters, all lower-case base32.
const keyPattern = /^(pk|sk)_(live|test)_[0-9a-hjkmnp-tv-z]{38}$/
const checksumLength = 6
const lookupPurpose = 'api-key-lookup'
const secretHashPurpose = 'api-key-secret-hash'

export interface KeyKind {
  type: KeyType
  environment: Environment
}

export interface GeneratedKey {
  key: string
  lookupHash: string
  preview: string
  displayKey: string | null
}

export function generateApiKey(
  options: KeyKind & { keyring: Keyring; random: Random },
): GeneratedKey {
  const { type, environment, keyring, random } = options
  const secret = base32Characters(random(32))
  const stem = `${type === 'secret' ? 'sk' : 'pk'}_${environment}_${secret}`
  const key = stem + checksum(stem, checksumLength)
  return {
    key,
    lookupHash: lookupHash(keyring.current, key),
    preview: `${key.slice(0, 12)}...${key.slice(-4)}`,
    displayKey: type === 'publishable' ? key : null,
  }
}

/** Returns the kind of an API key; undefined for any other text and for a wrong checksum, as after a typo. */
export function parseApiKey(text: string): KeyKind | undefined {
  const match = keyPattern.exec(text)
  if (!match) return undefined
  const stem = text.slice(0, -checksumLength)
  if (checksum(stem, checksumLength) !== text.slice(-checksumLength)) return undefined
  return {
    type: match[1] === 'sk' ? 'secret' : 'publishable',
    environment: match[2] === 'live' ? 'live' : 'test',
  }
}

/** Returns the key's possible lookup hashes: HMAC-SHA256 (hex) under each master key, current first. */
export function lookupHashes(keyring: Keyring, key: string): string[] {
  return keyring.all.map((master) => lookupHash(master, key))
}

function lookupHash(master: Keyring['current'], key: string): string {
  return createHmac('sha256', master.derive(lookupPurpose)).update(key).digest('hex')
}

/** Returns the SHA-256 (lower-case hex) from which sealed tokens derive their keys. It is as secret as the API key. */
export function secretHashOf(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}

export function sealSecretHash(options: {
  keyring: Keyring
  key: string
  keyId: KeyId
  random: Random
}): Buffer {
  const { keyring, key, keyId, random } = options
  const hash = createHash('sha256').update(key).digest()
  return seal(hash, { keyring, purpose: secretHashPurpose, context: keyId, random })
}

/** Returns the secret hash in hex; undefined if it was sealed for another key id or master key. */
export function openSecretHash(
  sealed: Buffer,
  { keyring, keyId }: { keyring: Keyring; keyId: KeyId },
): string | undefined {
  return open(sealed, { keyring, purpose: secretHashPurpose, context: keyId })?.toString('hex')
}
