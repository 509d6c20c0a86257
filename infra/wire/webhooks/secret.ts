import { open, seal } from '../../crypto/box.ts'
import type { Keyring } from '../../crypto/keyring.ts'
import type { Random } from '../../ids.ts'

const purpose = 'webhook-signing-secret'
/** Standard Webhooks asks for 24 to 64; a multiple of three leaves no padding in base64. */
const secretBytes = 33

/** What every signing secret begins with. */
export const secretPrefix = 'whsec_'

/** A new signing secret: `whsec_` and base64 of 33 random bytes. */
export function generateSigningSecret(random: Random): string {
  return secretPrefix + random(secretBytes).toString('base64')
}

/** Whether the text has the shape of a whole signing secret as we issue them; one pasted in part has not. */
export function isSigningSecret(text: string): boolean {
  if (!text.startsWith(secretPrefix)) return false
  const encoded = text.slice(secretPrefix.length)
  const bytes = Buffer.from(encoded, 'base64')
  return bytes.length === secretBytes && bytes.toString('base64') === encoded
}

/** The secret under the current master key; only the endpoint that it is sealed for can open it. */
export function sealSigningSecret(options: {
  keyring: Keyring
  random: Random
  secret: string
  endpointId: string
}): Buffer {
  const { keyring, random, secret, endpointId } = options
  return seal(Buffer.from(secret), { keyring, random, purpose, context: endpointId })
}

/** The secret as issued. Throws when none of our master keys opens it, or when it is another endpoint's. */
export function openSigningSecret(options: { keyring: Keyring; sealed: Buffer; endpointId: string }): string {
  const { keyring, sealed, endpointId } = options
  const secret = open(sealed, { keyring, purpose, context: endpointId })
  if (!secret) throw new Error(`no master key opens the signing secret of ${endpointId}`)
  return secret.toString()
}

/** Those that still sign at `now` (epoch ms), in the order given, which is newest first. */
export function liveSecrets<S extends { expires_at: number | null }>(secrets: S[], now: number): S[] {
  return secrets.filter(({ expires_at }) => expires_at === null || expires_at > now)
}
