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
  /** The whole key. A secret key is shown to its owner once and never stored. */
  key: string
  lookupHash: string
  /** Enough to recognise the key by, not to use it. */
  preview: string
  /** The whole key when it is publishable, else null. */
  displayKey: string | null
}

export function generateApiKey(options: KeyKind & { keyring: Keyring; random: Random }): GeneratedKey {
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

/** What a key says about itself; undefined when it is not a key or has a typo (its checksum is wrong). */
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

/** The hashes a key may be stored under: HMAC-SHA256 with each master key's pepper, hex, current first. */
export function lookupHashes(keyring: Keyring, key: string): string[] {
  return keyring.all.map((master) => lookupHash(master, key))
}

function lookupHash(master: Keyring['current'], key: string): string {
  return createHmac('sha256', master.derive(lookupPurpose)).update(key).digest('hex')
}

/** SHA-256 of a secret key, lower-case hex: what sealed tokens are keyed by. As secret as the key itself. */
export function secretHashOf(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}

/** The encrypted SHA-256 of a secret key, bound to the key's id. */
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

/** The lower-case hex hash that sealSecretHash sealed; undefined when it belongs to another key or master key. */
export function openSecretHash(
  sealed: Buffer,
  { keyring, keyId }: { keyring: Keyring; keyId: KeyId },
): string | undefined {
  return open(sealed, { keyring, purpose: secretHashPurpose, context: keyId })?.toString('hex')
}
