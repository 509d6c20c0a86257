import { createHmac } from 'node:crypto'
import type { Keyring, MasterKey } from '../../infra/crypto/keyring.ts'
import { isSameText } from '../../infra/crypto/same-text.ts'
import { generateToken, type Token } from '../../infra/crypto/tokens.ts'
import { base32Characters, type Random } from '../../infra/ids.ts'

const macLength = 8

/** Returns a token whose last random characters are a MAC of those before, so that a forged one costs no look-up. */
export function createSessionToken({ current }: Keyring, random: Random): Token<'contok'> {
  return generateToken('contok', (length) => {
    const bytes = random(length - macLength)
    return Buffer.concat([bytes, macOf(current, base32Characters(bytes))])
  })
}

/** Returns false for a forged token, and for one of a session that began before tokens had a MAC. */
export function isIssuedToken(keyring: Keyring, token: Token<'contok'>): boolean {
  const [, seed = '', mac = ''] = /^contok_(.{24})(.{8})/.exec(token) ?? []
  return keyring.all.some((master) => isSameText(base32Characters(macOf(master, seed)), mac))
}

function macOf(master: MasterKey, seed: string): Buffer {
  const mac = createHmac('sha256', master.secretKey('console-session-token')).update(seed).digest()
  return mac.subarray(0, macLength)
}
