import type { EnvironmentKeys } from '../credentials.ts'
import { type Client, clientNames } from './generate/families.ts'
import { defaultMix, type TrafficMix } from './generate/plan.ts'

/** A publishable key works for one kind of client. */
export type ClientKeys = Partial<Record<Client, string | undefined>>

export interface KeyFlags {
  publishableKey?: string
  iosKey?: string
  androidKey?: string
}

const flagNames = { web: '--publishable-key', ios: '--ios-key', android: '--android-key' }

export function storedKeys(keys: EnvironmentKeys): ClientKeys {
  const { publishable_key: web, ios_publishable_key: ios, android_publishable_key: android } = keys
  return { web, ios, android }
}

/**
 * The keys of the clients, and the weights of those that have one: only a client that --clients names must have one. Keys among
 * the flags are of an organization of their own, so that no stored key goes with them.
 */
export function chooseClients({
  flags,
  stored,
  weights,
}: {
  flags: KeyFlags
  stored: EnvironmentKeys | undefined
  weights: TrafficMix['clients']
}) {
  const own: ClientKeys = {
    web: flags.publishableKey,
    ios: flags.iosKey,
    android: flags.androidKey,
  }
  const hasOwn = clientNames.some((client) => own[client])
  const keys = hasOwn || !stored ? own : storedKeys(stored)
  const missing = clientNames.filter((client) => weights[client] > 0 && !keys[client])
  const [first] = missing
  if (!first) return { keys, weights }
  if (hasOwn && weights === defaultMix.clients)
    return {
      keys,
      weights: { ...weights, ...Object.fromEntries(missing.map((client) => [client, 0])) },
    }
  throw new Error(
    `There is no key for ${first} clients: give ${flagNames[first]}, or leave them out of --clients.`,
  )
}
