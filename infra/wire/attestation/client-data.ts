import { createHash } from 'node:crypto'

/** The data that an attestation binds to a document. */
export interface AttestedDocument {
  /** `challenge` of the open response. */
  challenge: string
  /** The app's public key for the document, as sent. */
  clientPublicKey: string
  /** The attestation key's id, as sent. */
  keyId: string
}

/**
 * Returns the SHA-256 of the three texts, joined by line feeds: `clientDataHash` of App Attest, `nonce` of Play
 * Integrity. It includes the client's key, so that a man in the middle cannot use the attestation for a document of
 * their own.
 */
export function clientDataHash({ challenge, clientPublicKey, keyId }: AttestedDocument): Buffer {
  return createHash('sha256').update([challenge, clientPublicKey, keyId].join('\n')).digest()
}
