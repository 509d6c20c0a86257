import type { Keyring } from '../../../infra/crypto/keyring.ts'
import type { Random } from '../../../infra/ids.ts'
import {
  generateSigningSecret,
  openSigningSecret,
  sealSigningSecret,
} from '../../../infra/wire/webhooks/signature.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'

export interface NewSecret {
  signingSecret: string
  /** As it is stored. */
  sealedSecret: Buffer
}

/** A new signing secret for the endpoint; with the same `random`, the same secret. */
export function generateSecret(
  { keyring, random }: { keyring: Keyring; random: Random },
  endpointId: string,
): NewSecret {
  const signingSecret = generateSigningSecret(random)
  const sealedSecret = sealSigningSecret({ keyring, random, secret: signingSecret, endpointId })
  return { signingSecret, sealedSecret }
}

/**
 * Whether the endpoint has the secret. Sealed bytes cannot be compared: a repetition seals under the master key that
 * is the current one then.
 */
export function hasSecret(
  { id, secrets }: EndpointRow,
  { keyring, signingSecret }: { keyring: Keyring; signingSecret: string },
): boolean {
  return secrets.some(({ sealed }) => {
    try {
      return openSigningSecret({ keyring, sealed, endpointId: id }) === signingSecret
    } catch {
      // Of a master key that is gone: no command of ours made it under a key that we have.
      return false
    }
  })
}
