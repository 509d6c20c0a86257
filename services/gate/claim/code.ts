import type { Keyring, MasterKey } from '../../../infra/crypto/keyring.ts'
import { isTokenOf, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { counterRandom } from '../../../infra/random.ts'

interface CodeOptions {
  keyring: Keyring
  gateSessionId: string
  approveToken: string
}

/**
 * Six digits that the page of this approve token shows. They are stored nowhere: whoever shows the page the same token
 * is shown the same code, as after a request whose answer got lost.
 */
export function newClaimCode({ keyring, ...of }: CodeOptions): { code: string; hash: string } {
  const code = codeUnder(keyring.current, of)
  return { code, hash: tokenHashes(keyring, hashedText(of.gateSessionId, code))[0] }
}

/** undefined for an approve token that has not approved. */
export function shownClaimCode({ keyring, ...of }: CodeOptions, hash: string | null): string | undefined {
  const codes = keyring.all.map((master) => codeUnder(master, of))
  return codes.find((code) => isClaimCode(keyring, { gateSessionId: of.gateSessionId, code, hash }))
}

interface ToldCode {
  gateSessionId: string
  code: string
  hash: string | null
}

export function isClaimCode(keyring: Keyring, { gateSessionId, code, hash }: ToldCode): boolean {
  return isTokenOf(keyring, { token: hashedText(gateSessionId, code), hash })
}

const hashedText = (gateSessionId: string, code: string) => `claim ${gateSessionId} ${code}`

function codeUnder(master: MasterKey, { gateSessionId, approveToken }: Omit<CodeOptions, 'keyring'>): string {
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
