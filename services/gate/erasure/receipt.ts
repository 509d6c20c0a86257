import type { Keyring, MasterKey } from '../../../infra/crypto/keyring.ts'
import { isSameText } from '../../../infra/crypto/same-text.ts'
import { generateToken, type Token } from '../../../infra/crypto/tokens.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import { counterRandom } from '../../../infra/random.ts'

/** Where a person who approved can have it forgotten who that was. The token is in no request for the page itself. */
export function receiptUrl(
  { keyring, publicUrl }: { keyring: Keyring; publicUrl: string },
  gateSessionId: GateSessionId,
): string {
  return `${publicUrl}/gate/receipt/${gateSessionId}#${tokenUnder(keyring.current, gateSessionId)}`
}

export function isReceiptOf(
  keyring: Keyring,
  { token, gateSessionId }: { token: string; gateSessionId: string },
): boolean {
  return keyring.all.some((master) => isSameText(tokenUnder(master, gateSessionId), token))
}

// It follows from the session, so it is stored nowhere.
function tokenUnder(master: MasterKey, gateSessionId: string): Token<'gtrcpt'> {
  return generateToken(
    'gtrcpt',
    counterRandom(master.derive('gate-receipt'), Buffer.from(gateSessionId)),
  )
}
