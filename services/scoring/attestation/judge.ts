import { createPublicKey, type X509Certificate } from 'node:crypto'
import { verifyAppAssertion, verifyAppAttest } from '../../../infra/wire/attestation/app-attest.ts'
import { clientDataHash } from '../../../infra/wire/attestation/client-data.ts'
import { openPlayToken, playProblem } from '../../../infra/wire/attestation/play-integrity.ts'
import type { AppleApp, GoogleApp } from './apps.ts'
import {
  type AttestationEvidence,
  counted,
  isInOrder,
  type Judge,
  type Verified,
} from './devices.ts'

type Finding = Verified | { problem: string } | { unverified: string }

export const judgeAttestation: Judge = async (evidence) => {
  const finding = await findingOf(evidence)
  const found = { method: evidence.sent.type, reason: null, app_id: null, device: null }
  if ('unverified' in finding) return { ...found, status: 'unverified', reason: finding.unverified }
  if ('problem' in finding) return { ...found, status: 'invalid', reason: finding.problem }
  return { ...found, status: 'valid', app_id: finding.appId, device: counted(finding, evidence) }
}

async function findingOf({ document, ...evidence }: AttestationEvidence): Promise<Finding> {
  const { sent, session, apps } = evidence
  const { challenge, client_public_key: clientPublicKey, opened_at: openedAt } = document ?? {}
  if (!challenge || !clientPublicKey || openedAt === undefined)
    return { unverified: 'unknown_document' }
  const hash = clientDataHash({ challenge, clientPublicKey, keyId: sent.key_id })
  const own = apps.apps.filter(
    ({ organization, platform }) =>
      organization === session.organization_id && platform === session.platform,
  )
  if (sent.type === 'play_integrity') {
    const google = own.filter((app) => app.platform === 'android')
    return byGoogle(google, { ...evidence, hash, openedAt })
  }
  const apple = own.filter((app) => app.platform === 'ios')
  if (apple.length === 0) return { unverified: 'unknown_app' }
  return byApple(apple, { ...evidence, hash, root: apps.root })
}

interface Hashed extends Omit<AttestationEvidence, 'document'> {
  hash: Buffer
}

function byApple(
  apps: AppleApp[],
  { sent, hash, known, ...of }: Hashed & { root: X509Certificate },
): Finding {
  const { session, receivedAt: at, root } = of
  const appIds = apps.map(({ appId }) => appId)
  const bytes = Buffer.from(sent.data, 'base64')
  if (sent.type === 'app_attest') {
    const expected = { appIds, clientDataHash: hash, keyId: sent.key_id, root, at }
    const allowsDevelopment = session.environment === 'test'
    const key = verifyAppAttest(bytes, { ...expected, allowsDevelopment })
    // An earlier counter of the same key still counts.
    return 'problem' in key ? key : { ...key, counter: known?.counter ?? 0 }
  }
  if (!known?.public_key) return { unverified: 'unknown_key' }
  const der = Buffer.from(known.public_key, 'base64')
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' })
  const assertion = verifyAppAssertion(bytes, { appIds, clientDataHash: hash, publicKey })
  if ('problem' in assertion) return assertion
  if (!isInOrder(assertion.counter, { known, receivedAt: at, session }))
    return { problem: 'counter' }
  return { ...assertion, publicKey: known.public_key }
}

// Clocks of devices and servers differ by so much.
const skewMs = 60_000

async function byGoogle(
  apps: GoogleApp[],
  { sent, hash, ...of }: Hashed & { openedAt: number },
): Promise<Finding> {
  const { session, openedAt, receivedAt } = of
  if (apps.length === 0) return { unverified: 'unknown_app' }
  for (const { packageName, keys } of apps) {
    const opened = await openPlayToken(sent.data, keys)
    if (opened === undefined) continue
    const between = [openedAt - skewMs, receivedAt + skewMs] as const
    const allowsDevelopment = session.environment === 'test'
    const refused = playProblem(opened, { packageName, nonce: hash, between, allowsDevelopment })
    return refused ?? { appId: packageName, publicKey: null, counter: 0 }
  }
  return { problem: 'malformed' }
}
