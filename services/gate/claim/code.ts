import type { Keyring, MasterKey } from '../../../infra/crypto/keyring.ts'
import { matchesTokenHash, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { createDeterministicRandom } from '../../../infra/random.ts'

interface CodeOptions {
  keyring: Keyring
  gateSessionId: string
  approveToken: string
}

/**
 * Returns the six-digit claim code for the page with this approve token. Only the hash is stored; a page that repeats
 * its request gets the same code, because it is derived.
 */
export function deriveClaimCode(options: CodeOptions): { code: string; hash: string } {
  const { keyring, gateSessionId } = options
  const code = codeUnder(keyring.current, options)
  return { code, hash: tokenHashes(keyring, hashInput(gateSessionId, code))[0] }
}

/** Returns the code that matches the stored hash; undefined if the session was approved with another token. */
export function findClaimCode(options: CodeOptions, hash: string | null): string | undefined {
  const { keyring, gateSessionId } = options
  const codes = keyring.all.map((master) => codeUnder(master, options))
  return codes.find((code) => isClaimCode(keyring, { gateSessionId, code, hash }))
}

export function isClaimCode(
  keyring: Keyring,
  { gateSessionId, code, hash }: { gateSessionId: string; code: string; hash: string | null },
): boolean {
  return matchesTokenHash(keyring, { token: hashInput(gateSessionId, code), hash })
}

const hashInput = (gateSessionId: string, code: string) => `claim ${gateSessionId} ${code}`

function codeUnder(master: MasterKey, { gateSessionId, approveToken }: CodeOptions): string {
  const seed = Buffer.from(`${gateSessionId}\0${approveToken}`)
  const number = createDeterministicRandom(
    master.derive('gate-claim-code'),
    seed,
  )(6).readUIntBE(0, 6)
  return String(number % 1_000_000).padStart(6, '0')
}

/** Returns the six digits without spaces and hyphens; undefined if the text is not a claim code. */
export function parseClaimCode(text: string): string | undefined {
  const digits = text.replaceAll(/[\s-]/g, '')
  return /^\d{6}$/.test(digits) ? digits : undefined
}

export const formatClaimCode = (code: string) => `${code.slice(0, 3)} ${code.slice(3)}`
