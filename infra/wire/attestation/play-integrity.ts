import type { KeyObject } from 'node:crypto'
import { compactDecrypt, compactVerify } from 'jose'
import { z } from 'zod'
import type { Refused } from './app-attest.ts'

/** Of one app, from the Play Console. */
export interface PlayKeys {
  /** AES, 256 bits. */
  decryption: KeyObject
  /** EC, P-256. */
  verification: KeyObject
}

export interface ExpectedVerdict {
  packageName: string
  /** What was attested; see `clientDataHash`. */
  nonce: Buffer
  /** Epoch milliseconds between which the verdict has to be made. */
  between: readonly [number, number]
  /** Whether builds count that Google Play does not know. */
  allowsDevelopment: boolean
}

const verdict = z.object({
  requestDetails: z.object({
    requestPackageName: z.string(),
    nonce: z.string(),
    timestampMillis: z.coerce.number(),
  }),
  appIntegrity: z.object({ appRecognitionVerdict: z.string(), packageName: z.string().optional() }),
  deviceIntegrity: z.object({ deviceRecognitionVerdict: z.array(z.string()).default([]) }),
})
type Verdict = z.infer<typeof verdict>

/**
 * What Google Play says in a token of a classic request, decrypted and verified with the operator's keys, without asking
 * Google. undefined = the keys do not open it. Throws nothing.
 */
export async function openPlayToken(token: string, keys: PlayKeys): Promise<unknown> {
  try {
    const { plaintext } = await compactDecrypt(token, keys.decryption, {
      keyManagementAlgorithms: ['A256KW'],
      contentEncryptionAlgorithms: ['A256GCM'],
    })
    const { payload } = await compactVerify(plaintext, keys.verification, { algorithms: ['ES256'] })
    return JSON.parse(Buffer.from(payload).toString('utf8'))
  } catch {
    return undefined
  }
}

/** undefined = the verdict vouches for app and device. */
export function playProblem(opened: unknown, expected: ExpectedVerdict): Refused | undefined {
  const read = verdict.safeParse(opened)
  if (!read.success) return { problem: 'malformed' }
  const { requestDetails: request } = read.data
  if (!Buffer.from(request.nonce, 'base64url').equals(expected.nonce)) return { problem: 'nonce' }
  const [from, until] = expected.between
  if (request.timestampMillis < from || request.timestampMillis > until) return { problem: 'time' }
  if (!isOf(expected.packageName, read.data)) return { problem: 'app' }
  // Before the app, because Google does not look at the app of a device that it does not trust.
  if (!isTrusted(read.data)) return { problem: 'device' }
  const isKnown =
    expected.allowsDevelopment || read.data.appIntegrity.appRecognitionVerdict === 'PLAY_RECOGNIZED'
  return isKnown ? undefined : { problem: 'app' }
}

// The package of the app is missing where the app was not looked at.
const isOf = (packageName: string, { requestDetails, appIntegrity }: Verdict) =>
  requestDetails.requestPackageName === packageName &&
  (appIntegrity.packageName ?? packageName) === packageName

const isTrusted = ({ deviceIntegrity }: Verdict) =>
  deviceIntegrity.deviceRecognitionVerdict.some((label) =>
    ['MEETS_DEVICE_INTEGRITY', 'MEETS_STRONG_INTEGRITY'].includes(label),
  )
