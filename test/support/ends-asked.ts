import { vi } from 'vitest'
import type { EventLog, Topic } from '../../infra/log/port.ts'

/** Resolves when the log was asked this many times for the end of the topic, as every decision does before it reads. */
export function endsAsked(log: EventLog, { topic, times = 1 }: { topic: Topic; times?: number }) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const ends = log.endPositions
  let asked = 0
  const spy = vi.spyOn(log, 'endPositions').mockImplementation((of) => {
    if (of === topic && ++asked === times) resolve()
    return ends(of)
  })
  return promise.finally(() => spy.mockRestore())
}
