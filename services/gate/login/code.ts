import type { Keyring, MasterKey } from '../../../infra/crypto/keyring.ts'
import { generateToken, isTokenOf, type Token, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { counterRandom } from '../../../infra/random.ts'

export interface LoginCode {
  code: Token<'gtcode'>
  /** What it is stored under. */
  hash: string
}

interface LoginCodeOptions {
  keyring: Keyring
  gateSessionId: string
  approveToken: string
  /** Of the login once it is approved, or null: whichever known master key made its code makes it again. */
  codeHash?: string | null
}

/**
 * The one-time code that an approval gives out. It follows from a master key, the session and the approve token, so
 * whoever repeats the approval is told the same one and it is stored nowhere. An approved login is asked about with its
 * `codeHash`, since the current master key may be another by then.
 */
export function loginCode({ keyring, gateSessionId, approveToken, codeHash }: LoginCodeOptions): LoginCode {
  const codeUnder = (master: MasterKey) => codeOf(master, `${gateSessionId}\0${approveToken}`)
  if (codeHash != null) {
    for (const code of keyring.all.map(codeUnder)) {
      if (isTokenOf(keyring, { token: code, hash: codeHash })) return { code, hash: codeHash }
    }
  }
  const code = codeUnder(keyring.current)
  return { code, hash: tokenHashes(keyring, code)[0] }
}

const codeOf = (master: MasterKey, seed: string) =>
  generateToken('gtcode', counterRandom(master.derive('gate-login-code'), Buffer.from(seed)))

/** Where the browser goes next: the service's dashboard, with the code in its query and the rest of it as it was. */
export function redirectUrl(dashboardLoginUrl: string, code: string): string {
  const url = new URL(dashboardLoginUrl)
  if (url.searchParams.has('code')) url.searchParams.delete('code')
  url.search = url.search === '' ? `code=${code}` : `${url.search}&code=${code}`
  return url.href
}
