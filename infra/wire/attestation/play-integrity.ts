import type { KeyObject } from 'node:crypto'
import { compactDecrypt, compactVerify } from 'jose'
import { z } from 'zod'
import type { Rejection } from './app-attest.ts'

/** An app's keys from the Play Console. */
export interface PlayKeys {
  /** AES, 256 bits. */
  decryption: KeyObject
  /** EC, P-256. */
  verification: KeyObject
}

export interface ExpectedVerdict {
  packageName: string
  /** The expected `clientDataHash`. */
  nonce: Buffer
  /** Period in which the verdict must have been created, epoch milliseconds. */
  between: readonly [number, number]
  /** Also accepts builds that Google Play does not recognize. */
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
 * Decrypts and verifies the token of a classic Play Integrity request with the operator's keys, without calling Google.
 * Returns undefined if the keys do not open the token. Never throws.
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

/** Checks a verdict. Returns undefined if the app and the device are genuine. */
export function playProblem(payload: unknown, expected: ExpectedVerdict): Rejection | undefined {
  const { data } = verdict.safeParse(payload)
  if (!data) return { problem: 'malformed' }
  const { requestDetails: request } = data
  if (!Buffer.from(request.nonce, 'base64url').equals(expected.nonce)) return { problem: 'nonce' }
  const [from, until] = expected.between
  if (request.timestampMillis < from || request.timestampMillis > until) return { problem: 'time' }
  if (!isFromPackage(expected.packageName, data)) return { problem: 'app' }
  // Checked before the app, because Google does not evaluate the app on an untrusted device.
  if (!isTrusted(data)) return { problem: 'device' }
  const isRecognized = data.appIntegrity.appRecognitionVerdict === 'PLAY_RECOGNIZED'
  return isRecognized || expected.allowsDevelopment ? undefined : { problem: 'app' }
}

// `appIntegrity.packageName` is missing if Google did not evaluate the app.
const isFromPackage = (packageName: string, { requestDetails, appIntegrity }: Verdict) =>
  requestDetails.requestPackageName === packageName &&
  (appIntegrity.packageName ?? packageName) === packageName

const isTrusted = ({ deviceIntegrity }: Verdict) =>
  deviceIntegrity.deviceRecognitionVerdict.some((label) =>
    ['MEETS_DEVICE_INTEGRITY', 'MEETS_STRONG_INTEGRITY'].includes(label),
  )
