import type { Patience } from './decision.ts'
import { SignupFailed, tellSignupFailure } from './failure.ts'

const echoMs = 1000

const givenUp =
  'Given up. Where a person has approved already the account may still be made; its credentials are lost then.'

/** Aborted by Ctrl-C or when the time, in seconds, is over. A later Ctrl-C says so and ends the process at once. */
export function stopSignals({ timeout, json }: { timeout?: number; json: boolean }): Patience {
  const [stop, timeUp] = [new AbortController(), new AbortController()]
  let since: number | undefined
  const onSignal = () => {
    // One Ctrl-C in a terminal arrives twice: from the terminal, and passed on by npm.
    if (since !== undefined && performance.now() - since > echoMs) {
      tellSignupFailure(new SignupFailed('interrupted', givenUp), { json })
      process.exit(130)
    }
    since ??= performance.now()
    stop.abort('interrupted')
  }
  const onTimeUp = () => {
    stop.abort('timed_out')
    timeUp.abort('timed_out')
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  if (timeout !== undefined) setTimeout(onTimeUp, timeout * 1000).unref()
  return { stop: stop.signal, timeUp: timeUp.signal }
}
