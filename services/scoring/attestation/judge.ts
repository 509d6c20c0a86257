import { createPublicKey, type X509Certificate } from 'node:crypto'
import { verifyAppAssertion, verifyAppAttest } from '../../../infra/wire/attestation/app-attest.ts'
import { clientDataHash } from '../../../infra/wire/attestation/client-data.ts'
import { openPlayToken, playProblem } from '../../../infra/wire/attestation/play-integrity.ts'
import type { AppleApp, GoogleApp } from './apps.ts'
import {
  type AttestationEvidence,
  countedDevice,
  isPlausibleCounter,
  type JudgeAttestation,
  type VerifiedAttestation,
} from './devices.ts'

type Finding = VerifiedAttestation | { problem: string } | { unverified: string }

export const judgeAttestation: JudgeAttestation = async (evidence) => {
  const finding = await findingOf(evidence)
  const base = { method: evidence.sent.type, reason: null, app_id: null, device: null }
  if ('unverified' in finding) return { ...base, status: 'unverified', reason: finding.unverified }
  if ('problem' in finding) return { ...base, status: 'invalid', reason: finding.problem }
  const device = countedDevice(finding, evidence)
  return { ...base, status: 'valid', app_id: finding.appId, device }
}

async function findingOf({ document, ...evidence }: AttestationEvidence): Promise<Finding> {
  const { sent, session, apps } = evidence
  const { challenge, client_public_key: clientPublicKey, opened_at: openedAt } = document ?? {}
  if (!challenge || !clientPublicKey || openedAt === undefined)
    return { unverified: 'unknown_document' }
  const hash = clientDataHash({ challenge, clientPublicKey, keyId: sent.key_id })
  const candidates = apps.apps.filter(
    ({ organization, platform }) =>
      organization === session.organization_id && platform === session.platform,
  )
  if (sent.type === 'play_integrity') {
    const googleApps = candidates.filter((app) => app.platform === 'android')
    return verifyGoogle(googleApps, { ...evidence, hash, openedAt })
  }
  const appleApps = candidates.filter((app) => app.platform === 'ios')
  if (appleApps.length === 0) return { unverified: 'unknown_app' }
  return verifyApple(appleApps, { ...evidence, hash, root: apps.root })
}

interface HashedEvidence extends Omit<AttestationEvidence, 'document'> {
  /** Client data hash that the attestation must contain. */
  hash: Buffer
}

function verifyApple(
  apps: AppleApp[],
  { sent, hash, stored, session, receivedAt: at, root }: HashedEvidence & { root: X509Certificate },
): Finding {
  const appIds = apps.map(({ appId }) => appId)
  const bytes = Buffer.from(sent.data, 'base64')
  if (sent.type === 'app_attest') {
    const expected = { appIds, clientDataHash: hash, keyId: sent.key_id, root, at }
    const allowsDevelopment = session.environment === 'test'
    const key = verifyAppAttest(bytes, { ...expected, allowsDevelopment })
    // A repeated attestation of the same key must not reset its counter.
    return 'problem' in key ? key : { ...key, counter: stored?.counter ?? 0 }
  }
  if (!stored?.public_key) return { unverified: 'unknown_key' }
  const der = Buffer.from(stored.public_key, 'base64')
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' })
  const assertion = verifyAppAssertion(bytes, { appIds, clientDataHash: hash, publicKey })
  if ('problem' in assertion) return assertion
  if (!isPlausibleCounter(assertion.counter, { stored, receivedAt: at, session }))
    return { problem: 'counter' }
  return { ...assertion, publicKey: stored.public_key }
}

// Tolerated clock skew between devices and servers.
const skewMs = 60_000

async function verifyGoogle(
  apps: GoogleApp[],
  { sent, hash, session, openedAt, receivedAt }: HashedEvidence & { openedAt: number },
): Promise<Finding> {
  if (apps.length === 0) return { unverified: 'unknown_app' }
  for (const { packageName, keys } of apps) {
    const opened = await openPlayToken(sent.data, keys)
    if (opened === undefined) continue
    const between = [openedAt - skewMs, receivedAt + skewMs] as const
    const allowsDevelopment = session.environment === 'test'
    const problem = playProblem(opened, { packageName, nonce: hash, between, allowsDevelopment })
    return problem ?? { appId: packageName, publicKey: null, counter: 0 }
  }
  return { problem: 'malformed' }
}
