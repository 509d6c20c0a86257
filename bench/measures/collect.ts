import type { Child } from '../child.ts'
import { type Contender, compare } from '../compare.ts'
import type { Environment } from '../environment.ts'
import type { LoadRequest } from '../load.ts'
import type { Measurement } from '../measurement.ts'
import {
  batchSequence,
  deal,
  fixedSequence,
  openBody,
  openRequest,
  type PreparedDocument,
  prepareDocument,
} from '../prepare.ts'
import type { Turns } from '../rounds.ts'
import type { Scale } from '../scale.ts'

export const connections = 64

/**
 * Measures collect's two frequent requests against the floor, which appends the same bytes through the same adapter.
 */
export async function measureCollect(
  environment: Environment,
  scale: Scale,
): Promise<Measurement[]> {
  const { live } = await environment.credentials()
  const child = await environment.startRoles('collect')
  const floor = await environment.startFloor()
  try {
    const parts = {
      environment,
      turns: scale.turns,
      child,
      floor,
      scale,
      publishableKey: live.publishable_key,
    }
    return [await measureBatches(parts), await measureOpens(parts)]
  } finally {
    await floor.stop()
    await child.stop()
  }
}

interface Parts {
  environment: Environment
  turns: Turns
  child: Child
  floor: Child
  scale: Scale
  publishableKey: string
}

async function measureBatches({
  environment,
  turns,
  child,
  floor,
  scale,
  publishableKey,
}: Parts): Promise<Measurement> {
  const target = { baseUrl: child.url, publishableKey }
  const documents = () => prepareDocuments(target, scale)
  const appends = appendsOf(await documents())
  const ours: Contender = {
    child,
    prepare: async () => deal(await documents(), connections).map(batchSequence),
  }
  const theirs: Contender = {
    child: floor,
    prepare: async () => deal(appends, connections).map(fixedSequence),
  }
  const names = { name: 'collect batch, throughput per core against the floor', aim: 0.8 }
  return compare({ ...names, environment, turns, ours, floor: theirs })
}

/**
 * Measures a batch against one whose sequence number is not claimed. Each side opens its own documents, because a batch
 * is accepted only once.
 */
export async function measureClaims(
  environment: Environment,
  scale: Scale,
): Promise<Measurement[]> {
  const { publishable_key: publishableKey } = (await environment.credentials()).live
  const child = await environment.startRoles('collect')
  const unclaimed = await environment.startUnclaimed()
  const contender = (at: Child): Contender => ({
    child: at,
    prepare: async () => {
      const documents = await prepareDocuments({ baseUrl: at.url, publishableKey }, scale)
      return deal(documents, connections).map(batchSequence)
    },
  })
  try {
    const claims = await compare({
      name: 'collect batch with its claim, throughput per core against one without',
      aim: 0.85,
      environment,
      turns: scale.turns,
      ours: contender(child),
      floor: contender(unclaimed),
    })
    return [claims]
  } finally {
    await unclaimed.stop()
    await child.stop()
  }
}

export async function prepareDocuments(
  target: { baseUrl: string; publishableKey: string },
  { documents, batchesPerDocument }: Scale,
): Promise<PreparedDocument[]> {
  const prepared: PreparedDocument[] = []
  for (let index = 0; index < documents; index++) {
    prepared.push(await prepareDocument(target, { index, batches: batchesPerDocument }))
  }
  return prepared
}

async function measureOpens({
  environment,
  turns,
  child,
  floor,
  scale,
  publishableKey,
}: Parts): Promise<Measurement> {
  const bodies = Array.from({ length: scale.opens }, (_, index) => openBody(index))
  const opens = bodies.map((body) => openRequest(publishableKey, body))
  const appends = opens.map((open, i) => appendOf(`sid_${i}`, open))
  const send = (requests: LoadRequest[]) => async () =>
    deal(requests, connections).map(fixedSequence)
  return compare({
    name: 'session open, throughput per core against the floor',
    aim: 0.3,
    environment,
    turns,
    ours: { child, prepare: send(opens) },
    floor: { child: floor, prepare: send(appends) },
  })
}

export function appendsOf(documents: readonly PreparedDocument[]): LoadRequest[] {
  return documents.flatMap(({ sessionId, requests }) =>
    requests.map((batch) => appendOf(sessionId, batch)),
  )
}

/** Returns the floor's request with the same bytes. */
function appendOf(key: string, { body, headers }: LoadRequest): LoadRequest {
  return { method: 'POST', path: `/append/${key}`, headers, ...(body ? { body } : {}) }
}
