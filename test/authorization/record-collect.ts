import { createCollectClient } from '../../infra/wire/collect/client.ts'
import type { Credential, Platform } from './credential.ts'
import type { Example } from './endpoint.ts'
import type { World } from './world.ts'

export interface CollectBodies {
  open: Example
  batch: Example
  result: Example
}

/** Requests of a real client, recorded so that they can be sent again under other keys. */
export async function recordCollect(
  world: World,
  key: string,
  platform: Platform,
): Promise<CollectBodies> {
  const sent = new Map<string, Example>()
  const client = () =>
    createCollectClient({
      endpoint: 'http://collect.test',
      publishableKey: key,
      sdk: { name: 'test-sdk', version: '1.0.0', platform },
      ...(platform === 'web' && { page: { url: 'https://shop.example/' } }),
      retry: { attempts: 1 },
      async fetch(target, { headers, body }) {
        const { authorization: _, ...rest } = lowerCase(headers)
        const url = new URL(target).pathname
        const bytes = Buffer.from(body)
        const request = { method: 'POST', url, headers: rest, body: bytes } as const
        sent.set(url.split('/').at(-1) ?? '', request)
        const response = await world.app.inject({
          ...request,
          headers: lowerCase(headers),
          payload: bytes,
        })
        const get = (name: string) => String(response.headers[name] ?? '') || null
        return { status: response.statusCode, headers: { get }, json: async () => response.json() }
      },
    })
  const observations = { version: 1, elapsed_ms: 5 } as const
  const batches = client()
  await batches.open()
  await batches.sendBatch(observations)
  // Uses another document, because a document that was handed off accepts no batch.
  const results = client()
  await results.open()
  await results.requestResult(observations)
  const of = (kind: string) => {
    const found = sent.get(kind)
    if (!found) throw new Error(`nothing was posted to ${kind}`)
    return found
  }
  return { open: of('sessions'), batch: of('batches'), result: of('results') }
}

function lowerCase(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
}

/** Records the collect requests of each platform with the key that it has. */
export async function recordBodies(world: World, credentials: Credential[]) {
  const record = (key: string, platform: Platform) => {
    const { authorization = '' } = credentials.find(({ name }) => name === key)?.headers ?? {}
    return recordCollect(world, authorization.slice('Bearer '.length), platform)
  }
  return {
    web: await record('publishable key', 'web'),
    ios: await record('iOS key in its SDK', 'ios'),
    android: await record('Android key in its SDK', 'android'),
  }
}
