import { setImmediate as settled } from 'node:timers/promises'
import type { HttpAnswer } from '../../../services/cli/simulate/http.ts'
import { createModel } from '../../infra/access/rate-limit/support/model.ts'
import { createVirtualTime } from '../../infra/access/rate-limit/support/virtual-time.ts'

export interface BucketOptions {
  /** Units in 60 seconds; undefined = it does not limit. */
  limit?: number | undefined
  /** What an admitted request is answered with; default 200. */
  status?: number | undefined
}

/** Milliseconds from a client to the server, and back. */
const travelMs = 5

/** A server with one bucket as the interface describes it, where a denied request costs a unit too, in virtual time. */
export function createBucketServer({ limit, status = 200 }: BucketOptions) {
  const time = createVirtualTime(0)
  const model = limit === undefined ? undefined : createModel(limit, 0)
  const received: { body: string; status: number }[] = []

  function take(): { admitted: boolean; headers: Record<string, string> } {
    if (!model) return { admitted: true, headers: {} }
    const { admitted, ...taken } = model.request(1, limit ?? 0, time.clock())
    let seconds = 1
    while (!model.wouldAdmit(1, time.clock() + seconds * 1000)) seconds++
    const told = {
      'x-ratelimit-limit': `${taken.limit}`,
      'x-ratelimit-remaining': `${taken.remaining}`,
    }
    return { admitted, headers: admitted ? told : { ...told, 'retry-after': `${seconds}` } }
  }

  async function request(body: string): Promise<HttpAnswer> {
    await time.after(travelMs)
    const { admitted, headers } = take()
    const answer = { status: admitted ? status : 429, body: Buffer.from('{}') }
    received.push({ body, status: answer.status })
    await time.after(travelMs)
    return { ...answer, headers: { get: (name) => headers[name] ?? null } }
  }

  /** Lets time pass until `work` is done. */
  async function until<T>(work: Promise<T>): Promise<T> {
    let done = false
    const ended = work.finally(() => {
      done = true
    })
    for (await settled(); !done; await settled()) await time.runUntil(time.clock() + 1000)
    return ended
  }

  return { request, received, until, pacerTime: { now: time.clock, wait: time.after } }
}
