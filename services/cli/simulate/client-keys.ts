import type { EnvironmentKeys } from '../credentials.ts'
import type { Client } from './generate/families.ts'
import type { TrafficMix } from './generate/plan.ts'

/** A publishable key works for one kind of client. */
export type ClientKeys = Partial<Record<Client, string | undefined>>

export interface KeyFlags {
  publishableKey?: string
  iosKey?: string
  androidKey?: string
}

const flagNames: Record<Client, string> = {
  web: '--publishable-key',
  ios: '--ios-key',
  android: '--android-key',
}

export const clients: Client[] = ['web', 'ios', 'android']

export function storedKeys(keys: EnvironmentKeys): ClientKeys {
  const { publishable_key: web, ios_publishable_key: ios, android_publishable_key: android } = keys
  return { web, ios, android }
}

interface KeyChoice {
  flags: KeyFlags
  stored: EnvironmentKeys | undefined
  weights: TrafficMix['clients']
}

/**
 * The keys of the clients that have a weight. Keys given as flags are of an organization of their own, so that no
 * stored key goes with them.
 */
export function chooseKeys({ flags, stored, weights }: KeyChoice): ClientKeys {
  const given: ClientKeys = { web: flags.publishableKey, ios: flags.iosKey, android: flags.androidKey }
  const isGiven = clients.some((client) => given[client])
  const keys = isGiven || !stored ? given : storedKeys(stored)
  const missing = clients.find((client) => weights[client] > 0 && !keys[client])
  if (!missing) return keys
  throw new Error(
    `There is no key for ${missing} clients: give ${flagNames[missing]}, or leave them out of --clients.`,
  )
}
