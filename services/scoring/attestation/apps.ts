import { createPublicKey, createSecretKey, type KeyObject, X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { readSettingFile } from '../../../infra/config.ts'
import { orUndefined, parseJsonOrUndefined } from '../../../infra/text.ts'
import { appleRoot } from '../../../infra/wire/attestation/apple-root.ts'
import type { PlayKeys } from '../../../infra/wire/attestation/play-integrity.ts'

export interface AppleApp {
  platform: 'ios'
  organization: string
  /** `TEAMID1234.com.example.app` */
  appId: string
}

export interface GoogleApp {
  platform: 'android'
  organization: string
  packageName: string
  keys: PlayKeys
}

/** Apps whose attestations are accepted, and the keys and certificates to verify them. */
export interface AttestedApps {
  apps: readonly (AppleApp | GoogleApp)[]
  /** Root certificate of App Attest. */
  root: X509Certificate
}

const organization = z.string().regex(/^org_\w+$/, { error: 'expected the id of an organization' })

const appleApp = z
  .strictObject({
    platform: z.literal('ios'),
    organization,
    app_id: z.string().regex(/^[A-Z0-9]{10}\.[\w.-]+$/, {
      error: 'expected an id such as TEAMID1234.com.example.app',
    }),
  })
  .transform(({ app_id: appId, ...app }): AppleApp => ({ ...app, appId }))

const googleApp = z
  .strictObject({
    platform: z.literal('android'),
    organization,
    package_name: z
      .string()
      .regex(/^\w+(\.\w+)+$/, { error: 'expected a name such as com.example.app' }),
    decryption_key: z.string().transform(parseOrIssue(aesKey, 'expected 32 bytes as base64')),
    verification_key: z
      .string()
      .transform(parseOrIssue(ecKey, 'expected a public key on P-256 as base64')),
  })
  .transform(
    ({ package_name: packageName, decryption_key, verification_key, ...app }): GoogleApp => ({
      ...app,
      packageName,
      keys: { decryption: decryption_key, verification: verification_key },
    }),
  )

const attestedApps = z.strictObject({
  apps: z.array(z.discriminatedUnion('platform', [appleApp, googleApp])),
  apple_root: z
    .string()
    .default(appleRoot)
    .transform(parseOrIssue((pem) => new X509Certificate(pem), 'expected a certificate as PEM')),
})

/** Throws one error that names every invalid member, without its value. */
export function readAttestedApps(text: string): AttestedApps {
  const { data, error } = attestedApps.safeParse(parseJsonOrUndefined(text))
  if (data) return { apps: data.apps, root: data.apple_root }
  const problems = error.issues.map(
    ({ path, message }) => `${path.join('.') || 'the file'}: ${message}`,
  )
  throw new Error(`ATTESTED_APPS_FILE is not valid:\n  ${problems.join('\n  ')}`)
}

/** Returns undefined if the setting is missing. Attestations are then ignored. */
export function loadAttestedApps({
  ATTESTED_APPS_FILE: file,
}: {
  ATTESTED_APPS_FILE?: string | undefined
}): AttestedApps | undefined {
  return file === undefined
    ? undefined
    : readAttestedApps(readSettingFile('ATTESTED_APPS_FILE', file))
}

function parseOrIssue<T>(read: (text: string) => T | undefined, message: string) {
  return (text: string, { addIssue }: { addIssue(message: string): void }): T => {
    const value = orUndefined(() => read(text))
    if (value !== undefined) return value
    addIssue(message)
    return z.NEVER
  }
}

function aesKey(base64: string): KeyObject | undefined {
  const bytes = Buffer.from(base64, 'base64')
  return bytes.length === 32 ? createSecretKey(bytes) : undefined
}

function ecKey(base64: string): KeyObject | undefined {
  const key = createPublicKey({ key: Buffer.from(base64, 'base64'), format: 'der', type: 'spki' })
  return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
}
