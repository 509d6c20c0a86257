import { createHash } from 'node:crypto'

/** What an app lets its device attest: that this document is its own. */
export interface AttestedDocument {
  /** `challenge` of the open answer. */
  challenge: string
  /** The key that the app made for the document, as sent. */
  clientPublicKey: string
  /** As sent next to the attestation. */
  keyId: string
}

/**
 * SHA-256 of the three as text, joined by line feeds: `clientDataHash` of App Attest, and `nonce` of Play Integrity. The
 * client's key is in it so that nobody between app and server can take an attestation for a document of their own.
 */
export function clientDataHash({ challenge, clientPublicKey, keyId }: AttestedDocument): Buffer {
  return createHash('sha256').update([challenge, clientPublicKey, keyId].join('\n')).digest()
}
