import { type CaughtUpOptions, createCaughtUp } from '../../../infra/event-store/caught-up.ts'
import { eventTopics } from '../../../schemas/events.ts'

/**
 * What `read` says of tokens and codes, once the read model of Gate shows all that it once showed. While it is filled
 * again, or has lost its last commits, revoked tokens would be good and good ones unknown: ApiError service.unavailable.
 */
export type Believed = <T>(read: () => Promise<T>) => Promise<T>

/** Costs one short query for each read. */
export function createBelieved(options: Omit<CaughtUpOptions, 'readModels'>): Believed {
  const readModels = [{ projection: 'gate', topic: eventTopics.AgentTokenRevoked }]
  const caughtUp = createCaughtUp({ ...options, readModels })

  return async function believed<T>(read: () => Promise<T>): Promise<T> {
    const identity = await caughtUp.reach()
    const value = await read()
    return (await caughtUp.isStill(identity)) ? value : believed(read)
  }
}
