import type { ApprovalDeps } from '../../../../services/gate/approval/account-request.ts'
import { signUpOrganization } from '../../../../services/organizations/sign-up.ts'
import { tester } from '../../../support/projections.ts'

export class Crash extends Error {
  override name = 'Crash'
}

export interface CrashPoint {
  /** Of the steps that reach something outside the process, from 1. */
  step: number
  /** Whether the step had its effect: its result is lost then. */
  effect: boolean
}

/** The same deps until the process dies at the point; after it nothing works any more. */
export function dyingAt(deps: ApprovalDeps, point: CrashPoint | undefined) {
  let steps = 0
  let isDead = false

  function die(): never {
    isDead = true
    throw new Crash()
  }

  function mortal<Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) {
    return async (...args: Args): Promise<Result> => {
      if (isDead) throw new Crash()
      const isLast = ++steps === point?.step
      if (isLast && !point.effect) die()
      const result = await call(...args)
      return isLast ? die() : result
    }
  }

  const { raise, attempt, giveUp } = deps.directCalls
  const decideAs: ApprovalDeps['decideAs'] = (actor) => (request) =>
    mortal(() => deps.decideAs(actor)(request))()
  const dying: ApprovalDeps = {
    ...deps,
    decideAs,
    pool: new Proxy(deps.pool, {
      get: (pool, name) =>
        name === 'query'
          ? mortal(async (...args: unknown[]) => Reflect.apply(pool.query, pool, args))
          : Reflect.get(pool, name),
    }),
    vault: { ...deps.vault, make: mortal(deps.vault.make) },
    directCalls: { raise: mortal(raise), attempt: mortal(attempt), giveUp: mortal(giveUp) },
    signUpOrganization: ({ startedAt, ...signup }) =>
      signUpOrganization({ ...deps, decide: decideAs(tester), idTime: startedAt }, signup),
  }
  return { deps: dying, steps: () => steps }
}
