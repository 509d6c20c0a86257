import { LRUCache } from 'lru-cache'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { openSigningSecret } from '../../infra/wire/webhooks/signature.ts'

/** Signing secrets in clear, only ever in memory. */
export interface SigningSecrets {
  /** Throws when none of our master keys opens it. */
  open(endpointId: string, sealed: Buffer): string
}

const maxRemembered = 10_000

/** Remembers the secrets that were used last: opening one costs more than the signature itself. */
export function createSigningSecrets(keyring: Keyring): SigningSecrets {
  const opened = new LRUCache<string, string>({ max: maxRemembered })
  return {
    open(endpointId, sealed) {
      const name = `${endpointId} ${sealed.toString('base64')}`
      const secret = opened.get(name) ?? openSigningSecret({ keyring, sealed, endpointId })
      opened.set(name, secret)
      return secret
    },
  }
}
