import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type AttestingDevice,
  sendAttestedSession,
} from '../../docs/examples/native/attested-session.ts'
import { openToken } from '../../services/web/server-sdk/index.ts'
import {
  appAssertion,
  appAttestation,
  createApple,
  createDeviceKey,
} from '../support/attestation.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { freshMetrics } from '../support/metrics.ts'
import { createRest } from '../support/rest.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const appId = 'ABCDE12345.com.example.shop'
const file = path.join(temporaryFolder('apps'), 'apps.json')
const apple = createApple()
const key = createDeviceKey()

let cluster: Cluster
let appKey: string

beforeAll(async () => {
  cluster = await startCluster()
  const { organizationId: organization, slug } = cluster.owner
  const target = ['--name', 'App', '--type', 'publishable', '--client-target', 'native-ios']
  const create = ['keys', 'create', slug, ...target]
  appKey = (await cluster.operate<{ revealed_key: string }>(...create)).revealed_key
  const app = { platform: 'ios', organization, app_id: appId }
  await writeFile(file, JSON.stringify({ apps: [app], apple_root: apple.pem }))
  cluster.settings.ATTESTED_APPS_FILE = file
  await cluster.replace()
}, 120_000)
afterAll(() => cluster?.stop())

type Attest = (hash: Buffer) => { type: 'app_attest' | 'app_attest_assertion'; data: Buffer }

const launch = (attest: Attest) => {
  const device: AttestingDevice = {
    keyId: async () => key.keyId,
    attest: async (_keyId, hash) => {
      const { type, data } = attest(Buffer.from(hash))
      return { type, data: data.toString('base64') }
    },
  }
  const native = {
    device_model: 'iPhone15,2',
    install_id: 'i-1',
    hooks: false,
    jailbreak_or_root: false,
  }
  return sendAttestedSession({
    options: {
      endpoint: cluster.baseUrl,
      publishableKey: appKey,
      fetch,
      sdk: { name: 'example', version: '1.0.0', platform: 'ios' },
    },
    snapshot: { native },
    device,
  })
}

async function decided(token: string) {
  const { session_id } = await openToken(token, cluster.owner.secret.key)
  return createRest(cluster.baseUrl, cluster.owner.secret.key).session(session_id)
}

const exportedDevices = z.object({
  sessions: z.array(
    z.object({
      decisions: z.array(z.object({ attestation: z.object({ device: z.unknown() }).nullable() })),
    }),
  ),
})

it('launches of an app that its device attests are those of one device, and without it of none', async () => {
  const first = await decided(
    await launch((hash) => ({
      type: 'app_attest',
      data: appAttestation({ apple, key, appId, hash }),
    })),
  )
  expect(first.decision).toMatchObject({ automation_status: 'human' })
  expect(first.analysis_coverage.attestation).toBe(true)
  const asserted: Attest = (hash) => ({
    type: 'app_attest_assertion',
    data: appAssertion({ key, appId, hash, counter: 1 }),
  })
  const second = await decided(await launch(asserted))
  expect(second.device_identity).toMatchObject({
    id: first.device_identity?.id,
    source: 'attested',
    lifecycle: { seen_count: 2 },
  })
  const visitor = second.visitor_fingerprint?.id
  const exported = `/v1/organizations/${cluster.owner.organizationId}/visitors/${visitor}/export`
  const public_key = key.keys.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  const { sessions } = exportedDevices.parse(await cluster.read(exported))
  const devices = sessions.flatMap(({ decisions }) =>
    decisions.map(({ attestation }) => attestation?.device),
  )
  const device = { id: first.device_identity?.id, public_key, counter: 1 }
  expect(devices).toContainEqual(expect.objectContaining(device))
  const cloned = await decided(await launch(asserted))
  expect(cloned.signals_fired.map(({ signal }) => signal)).toContain('attestation_counter')
  const offline = await decided(
    await launch(() => {
      throw new Error('no network')
    }),
  )
  expect(offline).toMatchObject({
    device_identity: null,
    decision: { automation_status: 'uncertain' },
  })
  const counts = await freshMetrics(cluster.baseUrl)
  const found = [
    'app_attest",status="valid',
    'app_attest_assertion",status="valid',
    'app_attest_assertion",status="invalid',
  ]
  for (const one of found)
    expect(counts).toContain(`tidegate_attestations_total{method="${one}"} 1`)
}, 60_000)
