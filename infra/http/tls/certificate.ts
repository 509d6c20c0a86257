import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'

export interface CertificateFiles {
  certFile: string
  keyFile: string
}

export interface Certificate {
  cert: string
  key: string
}

/** Rejects with a message for the operator where the files are not there or do not belong together. */
export async function readCertificate({ certFile, keyFile }: CertificateFiles): Promise<Certificate> {
  try {
    const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')])
    // TLS itself takes an empty file for none, which is what a file has while it is written.
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) throw new Error('they do not fit')
    createSecureContext({ cert, key })
    return { cert, key }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : cause
    throw new Error(`TLS_CERT_FILE and TLS_KEY_FILE cannot be used: ${reason}`, { cause })
  }
}
