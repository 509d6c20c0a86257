import { constantTimeEqual } from '../../../infra/crypto/constant-time.ts'
import type { Keyring, MasterKey } from '../../../infra/crypto/keyring.ts'
import { generateToken, type Token } from '../../../infra/crypto/tokens.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import { createDeterministicRandom } from '../../../infra/random.ts'

/** Returns the link to the page where the person who approved can erase their data. The token is in the fragment. */
export function receiptUrl(
  { keyring, publicUrl }: { keyring: Keyring; publicUrl: string },
  gateSessionId: GateSessionId,
): string {
  return `${publicUrl}/gate/receipt/${gateSessionId}#${deriveToken(keyring.current, gateSessionId)}`
}

export function isReceiptToken(
  keyring: Keyring,
  { token, gateSessionId }: { token: string; gateSessionId: string },
): boolean {
  return keyring.all.some((master) => constantTimeEqual(deriveToken(master, gateSessionId), token))
}

// Derived from the session, so that the token doesn't have to be stored.
function deriveToken(master: MasterKey, gateSessionId: string): Token<'gtrcpt'> {
  return generateToken(
    'gtrcpt',
    createDeterministicRandom(master.derive('gate-receipt'), Buffer.from(gateSessionId)),
  )
}
