import type { EnvironmentKeys } from '../credentials.ts'
import { type Client, clientNames } from './generate/families.ts'
import { defaultMix, type TrafficMix } from './generate/plan.ts'

/** Publishable keys by client. Each key works for a single client. */
export type ClientKeys = Partial<Record<Client, string | undefined>>

export interface KeyFlags {
  publishableKey?: string
  iosKey?: string
  androidKey?: string
}

const flagNames = { web: '--publishable-key', ios: '--ios-key', android: '--android-key' }

export function clientKeysOf(keys: EnvironmentKeys): ClientKeys {
  const { publishable_key: web, ios_publishable_key: ios, android_publishable_key: android } = keys
  return { web, ios, android }
}

/**
 * Returns the key and weight of each client. A client without a key gets weight 0 by default, but throws if --clients names
 * it. Keys from flags may belong to another organization, so they are never combined with stored keys.
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
  const flagKeys: ClientKeys = {
    web: flags.publishableKey,
    ios: flags.iosKey,
    android: flags.androidKey,
  }
  const hasFlagKeys = clientNames.some((client) => flagKeys[client])
  const keys = hasFlagKeys || !stored ? flagKeys : clientKeysOf(stored)
  const missing = clientNames.filter((client) => weights[client] > 0 && !keys[client])
  const [first] = missing
  if (!first) return { keys, weights }
  if (hasFlagKeys && weights === defaultMix.clients)
    return {
      keys,
      weights: { ...weights, ...Object.fromEntries(missing.map((client) => [client, 0])) },
    }
  throw new Error(
    `No key for ${first} clients: set ${flagNames[first]}, or leave ${first} out of --clients.`,
  )
}
