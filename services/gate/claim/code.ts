import type { Keyring, MasterKey } from '../../../infra/crypto/keyring.ts'
import { isTokenOf, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { counterRandom } from '../../../infra/random.ts'

interface CodeOptions {
  keyring: Keyring
  gateSessionId: string
  approveToken: string
}

/**
 * Six digits for the page with this approve token. They are stored nowhere, because the same token always makes the same
 * code, as after a request whose answer got lost.
 */
export function newClaimCode(options: CodeOptions): { code: string; hash: string } {
  const { keyring, gateSessionId } = options
  const code = codeUnder(keyring.current, options)
  return { code, hash: tokenHashes(keyring, hashedText(gateSessionId, code))[0] }
}

/** The code of a page, by the stored hash; undefined for an approve token that has not approved. */
export function claimCodeOf(options: CodeOptions, hash: string | null): string | undefined {
  const { keyring, gateSessionId } = options
  const codes = keyring.all.map((master) => codeUnder(master, options))
  return codes.find((code) => isClaimCode(keyring, { gateSessionId, code, hash }))
}

export function isClaimCode(
  keyring: Keyring,
  { gateSessionId, code, hash }: { gateSessionId: string; code: string; hash: string | null },
): boolean {
  return isTokenOf(keyring, { token: hashedText(gateSessionId, code), hash })
}

const hashedText = (gateSessionId: string, code: string) => `claim ${gateSessionId} ${code}`

function codeUnder(master: MasterKey, { gateSessionId, approveToken }: CodeOptions): string {
  const seed = Buffer.from(`${gateSessionId}\0${approveToken}`)
  const number = counterRandom(master.derive('gate-claim-code'), seed)(6).readUIntBE(0, 6)
  return String(number % 1_000_000).padStart(6, '0')
}

/** As people write it: with spaces or hyphens, too. undefined for what is no code. */
export function readClaimCode(text: string): string | undefined {
  const digits = text.replaceAll(/[\s-]/g, '')
  return /^\d{6}$/.test(digits) ? digits : undefined
}

export const spacedCode = (code: string) => `${code.slice(0, 3)} ${code.slice(3)}`
