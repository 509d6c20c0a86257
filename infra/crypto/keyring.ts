import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

export interface MasterKey {
  /** First 4 bytes (hex) of a hash of the key. Sealed values start with it. */
  id: string
  /** Derives 32 bytes: HKDF-SHA256 (RFC 5869) with the purpose as info. */
  derive(purpose: string): Buffer
  /** Returns the derived key as a KeyObject, which node:crypto uses several times faster than bytes. */
  secretKey(purpose: string): KeyObject
}

/** Master keys: `current` seals new values; `all` (current first) can open older ones. */
export interface Keyring {
  current: MasterKey
  all: MasterKey[]
  byId(id: string): MasterKey | undefined
}

/**
 * Parses comma-separated base64 keys of at least 32 bytes, current first. Throws if there is none, or if one is
 * shorter.
 */
export function createKeyring(setting: string): Keyring {
  const all = setting
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)
    .map(masterKey)
  const [current] = all
  if (!current) throw new Error('TIDEGATE_MASTER_KEYS is empty')
  return { current, all, byId: (id) => all.find((key) => key.id === id) }
}

/** Returns a keyring that opens only values sealed under the current key. */
export function withCurrentKeyOnly({ current }: Keyring): Keyring {
  return { current, all: [current], byId: (id) => (id === current.id ? current : undefined) }
}

function masterKey(encoded: string): MasterKey {
  const secret = Buffer.from(encoded, 'base64')
  if (secret.length < 32)
    throw new Error('TIDEGATE_MASTER_KEYS: each key needs at least 32 bytes of base64')
  const derived = new Map<string, { bytes: Buffer; key: KeyObject }>()
  function deriveOnce(purpose: string) {
    const cached = derived.get(purpose)
    if (cached) return cached
    const bytes = Buffer.from(hkdfSync('sha256', secret, '', `tidegate:${purpose}`, 32))
    const keys = { bytes, key: createSecretKey(bytes) }
    derived.set(purpose, keys)
    return keys
  }
  return {
    id: createHmac('sha256', secret).update('tidegate:key-id').digest('hex').slice(0, 8),
    derive: (purpose) => deriveOnce(purpose).bytes,
    secretKey: (purpose) => deriveOnce(purpose).key,
  }
}
