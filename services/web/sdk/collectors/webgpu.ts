import type { Snapshot } from '../../../../schemas/observations.ts'
import { attempt, booleanOf, hashJson, member, textOf } from '../support.ts'

type WebGpu = Snapshot['webgpu']

/** The graphics adapter by WebGPU. `available` says whether an adapter answered, not whether the API exists. */
export async function collectWebGpu(): Promise<WebGpu> {
  const adapter = await requestAdapter()
  if (!adapter) return { ...nothing, available: false }
  const info = member(adapter, 'info')
  return {
    available: true,
    adapter_vendor: textOf(member(info, 'vendor')),
    adapter_architecture: textOf(member(info, 'architecture')),
    fallback_adapter:
      booleanOf(member(info, 'isFallbackAdapter')) ?? booleanOf(member(adapter, 'isFallbackAdapter')),
    features_hash: attempt(() => hashJson(featuresOf(member(adapter, 'features')))),
    limits_hash: attempt(() => hashJson(limitsOf(member(adapter, 'limits')))),
  }
}

const nothing: WebGpu = {
  available: null,
  adapter_vendor: null,
  adapter_architecture: null,
  fallback_adapter: null,
  features_hash: null,
  limits_hash: null,
}

async function requestAdapter(): Promise<unknown> {
  const gpu = member(navigator, 'gpu')
  const request = member(gpu, 'requestAdapter')
  return typeof request === 'function' ? Reflect.apply(request, gpu, []) : null
}

function featuresOf(features: unknown): unknown[] {
  return features instanceof Set || isIterable(features) ? [...features].sort() : []
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof member(value, Symbol.iterator.toString()) === 'function' || Symbol.iterator in Object(value)
}

function limitsOf(limits: unknown): [string, unknown][] {
  const found: [string, unknown][] = []
  for (const name in Object(limits)) found.push([name, member(limits, name)])
  return found.filter(([, value]) => typeof value === 'number').sort()
}
