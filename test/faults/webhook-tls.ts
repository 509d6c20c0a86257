import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Certificate, createAuthority } from '../support/tls-certificates.ts'

export interface TestAuthority {
  /** For processes that shall trust it. */
  env: { NODE_EXTRA_CA_CERTS: string }
  /** Of 127.0.0.1, by the authority. */
  trusted: Certificate
  /** Of 127.0.0.1, by another that nobody knows. */
  untrusted: Certificate
  close(): Promise<void>
}

/** A certificate authority that servers of a test trust beside those that Node brings. */
export async function createTestAuthority(): Promise<TestAuthority> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-ca-'))
  const authority = createAuthority()
  const file = path.join(folder, 'ca.pem')
  await writeFile(file, authority.ca)
  return {
    env: { NODE_EXTRA_CA_CERTS: file },
    trusted: authority.issue({ host: '127.0.0.1' }),
    untrusted: createAuthority('Stranger').issue({ host: '127.0.0.1' }),
    close: () => rm(folder, { recursive: true }),
  }
}
