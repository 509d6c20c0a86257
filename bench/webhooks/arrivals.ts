import http from 'node:http'
import { text } from 'node:stream/consumers'
import { z } from 'zod'

const schema = z.array(z.tuple([z.string(), z.number()]))

/** Resolves once so many different events have arrived since the last call: when each did (epoch ms), by event id. */
export async function arrivals(receiverUrl: string, count: number): Promise<Map<string, number>> {
  // Not fetch, which gives up on an answer that takes minutes.
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>()
  http.get(`${receiverUrl}/arrivals?count=${count}`, resolve).once('error', reject)
  return new Map(schema.parse(JSON.parse(await text(await promise))))
}

/** From the first arrival to the last. */
export function spanSeconds(times: ReadonlyMap<string, number>): number {
  const sorted = [...times.values()].sort((a, b) => a - b)
  return ((sorted.at(-1) ?? 0) - (sorted[0] ?? 0)) / 1000
}
