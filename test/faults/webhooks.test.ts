import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clusterLogs, type Owner } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { createNumbers } from '../support/hand.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { createAuthority } from '../support/tls-certificates.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import {
  type Delivery,
  fastAttempts,
  openWebhookWorld,
  sessionIds,
  type WebhookWorld,
} from '../support/webhook-world.ts'
import { createFaults } from './webhook-faults.ts'
import { type Judgement, judge } from './webhook-judgement.ts'

const tenantCount = 4
/** Each session is final at once and has a visitor: two events, delivered to one endpoint each. */
const types = ['session.fingerprint.calculated', 'session.result.persisted'] as const
/** Fewer where nothing is killed in between. */
const sessionsOf = { calm: 100, killed: 250 }
/** Plain requests between two kills: fewer in all than what the faults cause. */
const requestsPerKill = 220
/** As long as an attempt may take, and a little to record it. */
const underWayMs = 1500
/** The share of connections to the HTTPS receiver that get a certificate of an unknown authority. */
const untrustedShare = 0.2

const runs = clusterLogs().flatMap((log) => [
  { log, kills: 0, events: sessionsOf.calm * tenantCount * types.length },
  { log, kills: 10, events: sessionsOf.killed * tenantCount * types.length },
])

describe.each(runs)(
  '$events events to a receiver with faults, $log, $kills kills',
  ({ log, kills, events }) => {
    const sessionsOfTenant = events / tenantCount / types.length
    const seed = Number(process.env.TEST_SEED ?? Date.now() % 1_000_000)
    const killedAt: number[] = []
    const endpoints = new Map<string, string>()
    const authority = createAuthority()
    const caFile = path.join(temporaryFolder('webhook-ca'), 'ca.pem')
    const trusted = authority.issue({ host: '127.0.0.1' })
    const untrusted = createAuthority('Stranger').issue({ host: '127.0.0.1' })
    let world: WebhookWorld
    let canary: WebhookReceiver
    let plain: WebhookReceiver
    let secure: WebhookReceiver
    let tenants: Owner[] = []
    let deliveries: Delivery[] = []
    let judgement: Judgement

    beforeAll(async () => {
      await writeFile(caFile, authority.ca)
      canary = await startWebhookReceiver()
      const choose = createFaults({ seed, canaryUrl: canary.url('/'), faulty: 0.35, doomed: 0.03 })
      plain = await startWebhookReceiver({ choose })
      const next = createNumbers(seed)
      const certificate = () => (next() < untrustedShare ? untrusted : trusted)
      secure = await startWebhookReceiver({ choose, certificate })
      world = await openWebhookWorld({ log, env: { NODE_EXTRA_CA_CERTS: caFile } })
      tenants = await Promise.all(Array.from({ length: tenantCount }, world.cluster.organization))
      await createEndpoints()
      await deliverAll()
      deliveries = await allEnded(world, events)
      const requests = [...plain.requests, ...secure.requests]
      const received = Map.groupBy(requests, ({ path }) => endpoints.get(path) ?? path)
      const history = await world.history()
      const maxAttempts = fastAttempts
      judgement = judge({ deliveries, history, received, kills: killedAt, maxAttempts, underWayMs })
      const { wrong, ...counts } = judgement
      console.log(`${log}, seed ${seed} (TEST_SEED), ${kills} kills: ${JSON.stringify(counts)}`)
    }, 180_000)
    afterAll(async () => {
      await world?.close()
      await Promise.all([plain?.close(), secure?.close(), canary?.close()])
    })

    async function createEndpoints(): Promise<void> {
      for (const [i, tenant] of tenants.entries()) {
        for (const type of types) {
          const receiver = i < 2 && type === types[0] ? secure : plain
          const path = `/${i}/${type}`
          const endpoint = await world.createEndpoint(receiver.url(path), [type], tenant)
          receiver.expectSignature(path, endpoint.signing_secret)
          endpoints.set(path, endpoint.id)
        }
      }
    }

    /** Half of the events at once and the rest along the way: a dispatcher that starts finds work, and more comes. */
    async function deliverAll(): Promise<void> {
      let dispatcher = await world.startDispatcher()
      await score(0, 0.5)
      for (let kill = 0; kill < kills; kill++) {
        await score(0.5 + kill / kills / 2, 0.5 + (kill + 1) / kills / 2)
        await plain.reached((kill + 1) * requestsPerKill)
        await dispatcher.end('SIGKILL')
        killedAt.push(Date.now())
        dispatcher = await world.startDispatcher()
      }
      if (kills === 0) await score(0.5, 1)
    }

    async function score(from: number, to: number): Promise<void> {
      for (const [i, tenant] of tenants.entries()) {
        const all = sessionIds(`${seed} ${i}`, sessionsOfTenant)
        const [start, end] = [Math.round(from * all.length), Math.round(to * all.length)]
        await world.score(tenant, all.slice(start, end))
      }
    }

    it('every event ends delivered or failed, with its attempts recorded, and none is lost', () => {
      expect(judgement.wrong.slice(0, 10)).toEqual([])
      expect(deliveries).toHaveLength(events)
      expect(judgement.ends.succeeded).toBeGreaterThan(events * 0.9)
      expect(judgement.ends.failed).toBeGreaterThan(0)
    })

    it('nothing is delivered twice, except around a kill', () => {
      expect(killedAt).toHaveLength(kills)
      // An endpoint has at most ten deliveries under way, so no kill can interrupt more than these.
      expect(judgement.duplicates).toBeLessThanOrEqual(kills * endpoints.size * 10)
    })

    it('every request is signed and has one id over all attempts, and no redirect is followed', () => {
      expect([...plain.problems, ...secure.problems]).toEqual([])
      expect(canary.connections()).toBe(0)
    })
  },
)

function allEnded(world: WebhookWorld, events: number): Promise<Delivery[]> {
  const check = async () => {
    const all = await world.deliveries()
    expect(all.length).toBe(events)
    expect(all.filter(({ status }) => status === 'pending').length).toBe(0)
    return all
  }
  return eventually(check, { timeoutMs: 120_000, intervalMs: 200 })
}
