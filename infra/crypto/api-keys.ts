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

/** undefined when it is no key or has a typo, since its checksum is wrong. */
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

/** A key may be stored under any of them: HMAC-SHA256 with each master key's pepper, hex, current first. */
export function lookupHashes(keyring: Keyring, key: string): string[] {
  return keyring.all.map((master) => lookupHash(master, key))
}

function lookupHash(master: Keyring['current'], key: string): string {
  return createHmac('sha256', master.derive(lookupPurpose)).update(key).digest('hex')
}

/** SHA-256 in lower-case hex, which sealed tokens are keyed by. It is as secret as the key itself. */
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

/** undefined when it was sealed for another key or master key. */
export function openSecretHash(
  sealed: Buffer,
  { keyring, keyId }: { keyring: Keyring; keyId: KeyId },
): string | undefined {
  return open(sealed, { keyring, purpose: secretHashPurpose, context: keyId })?.toString('hex')
}
