import type { Keyring, MasterKey } from '../../../infra/crypto/keyring.ts'
import { isSameText } from '../../../infra/crypto/same-text.ts'
import { generateToken, type Token } from '../../../infra/crypto/tokens.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import { counterRandom } from '../../../infra/random.ts'

/**
 * Returns the link to the page where the person who approved can erase their data. The fragment is never sent to us.
 */
export function receiptUrl(
  { keyring, publicUrl }: { keyring: Keyring; publicUrl: string },
  gateSessionId: GateSessionId,
): string {
  return `${publicUrl}/gate/receipt/${gateSessionId}#${deriveToken(keyring.current, gateSessionId)}`
}

export function isReceiptOf(
  keyring: Keyring,
  { token, gateSessionId }: { token: string; gateSessionId: string },
): boolean {
  return keyring.all.some((master) => isSameText(deriveToken(master, gateSessionId), token))
}

// Derives the token from the session, so that it need not be stored.
function deriveToken(master: MasterKey, gateSessionId: string): Token<'gtrcpt'> {
  return generateToken(
    'gtrcpt',
    counterRandom(master.derive('gate-receipt'), Buffer.from(gateSessionId)),
  )
}
