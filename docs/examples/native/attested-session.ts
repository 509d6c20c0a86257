// A session of an app that its device attests: the reference for an SDK in Swift or Kotlin. `device` stands for what
// DCAppAttestService, or the IntegrityManager of Google Play, does.
import { createHash } from 'node:crypto'
import {
  type CollectClientOptions,
  createCollectClient,
} from '../../../infra/wire/collect/client.ts'
import type { SentAttestation, SentSnapshot } from '../../../schemas/observations.ts'

export interface AttestingDevice {
  /** App Attest: of the key in the keychain, or of a new one. Play Integrity: the app's install id. */
  keyId(): Promise<string>
  /** `attestKey` for a new key, `generateAssertion` for one that was attested, or a classic integrity token. */
  attest(keyId: string, hash: Uint8Array): Promise<Pick<SentAttestation, 'type' | 'data'>>
}

interface Launch {
  options: CollectClientOptions
  snapshot: SentSnapshot
  device: AttestingDevice
}

/** Sends a launch of the app, and returns the sealed token for the app's back end. */
export async function sendAttestedSession({ options, snapshot, device }: Launch): Promise<string> {
  const client = createCollectClient(options)
  const startedAt = performance.now()
  const sent = () => ({ version: 1 as const, elapsed_ms: performance.now() - startedAt })
  const { challenge, clientPublicKey } = await client.open()
  await client.sendBatch({ ...sent(), snapshot })
  const keyId = await device.keyId()
  const hash = createHash('sha256').update([challenge, clientPublicKey, keyId].join('\n')).digest()
  // Without a network to Apple or Google, or on an old device, there is none. The session goes on as it is.
  const attested = await device.attest(keyId, hash).catch(() => undefined)
  const attestation = attested && { ...attested, key_id: keyId }
  const { sealedToken } = await client.requestResult({
    ...sent(),
    ...(attestation && { attestation }),
  })
  return sealedToken
}
