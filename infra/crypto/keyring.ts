import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

/** `id` is the first 4 bytes (hex) of a hash of the key, so that sealed values say which key made them. */
export interface MasterKey {
  id: string
  /** 32 bytes: HKDF-SHA256 (RFC 5869) with the purpose as info. */
  derive(purpose: string): Buffer
  /** The same key ready for use. node:crypto takes several times as long to start from bytes. */
  secretKey(purpose: string): KeyObject
}

/** `current` makes new values; `all` (current first) still opens older ones. */
export interface Keyring {
  current: MasterKey
  all: MasterKey[]
  byId(id: string): MasterKey | undefined
}

/**
 * `setting`: base64 values of at least 32 bytes, comma-separated, current first. Throws when one is missing or weak:
 * starting without them would lock everyone out later.
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

/** Opens what the current key made, and nothing older. */
export function currentOnly({ current }: Keyring): Keyring {
  return { current, all: [current], byId: (id) => (id === current.id ? current : undefined) }
}

function masterKey(encoded: string): MasterKey {
  const secret = Buffer.from(encoded, 'base64')
  if (secret.length < 32)
    throw new Error('TIDEGATE_MASTER_KEYS: each key needs at least 32 bytes of base64')
  const derived = new Map<string, { bytes: Buffer; key: KeyObject }>()
  function deriveOnce(purpose: string) {
    const known = derived.get(purpose)
    if (known) return known
    const bytes = Buffer.from(hkdfSync('sha256', secret, '', `tidegate:${purpose}`, 32))
    const made = { bytes, key: createSecretKey(bytes) }
    derived.set(purpose, made)
    return made
  }
  return {
    id: createHmac('sha256', secret).update('tidegate:key-id').digest('hex').slice(0, 8),
    derive: (purpose) => deriveOnce(purpose).bytes,
    secretKey: (purpose) => deriveOnce(purpose).key,
  }
}
