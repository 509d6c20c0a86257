import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'

/** Options from `automation.ts`: url, folder, seed, chromium, headless, and those of the framework. */
export const options = JSON.parse(process.env.EVAL_CASE)

export const text = {
  name: 'Maria Lindqvist',
  email: 'maria.lindqvist@example.org',
  message: 'Please call me back on Monday.',
}

const quiet = ['--no-sandbox', '--no-first-run', '--no-default-browser-check', '--disable-sync']
export const flags = [...quiet, ...(options.flags ?? [])]

/** Loads the page, acts on request, and closes when standard input ends. */
export async function drive({ load, act, close }) {
  const { promise: toldToAct, resolve } = Promise.withResolvers()
  const { promise: over, resolve: end } = Promise.withResolvers()
  createInterface(process.stdin)
    .on('line', resolve)
    .on('close', () => end('over'))
  await load(options.url)
  if ((await Promise.race([toldToAct, over])) !== 'over') await act?.()
  await over
  await Promise.race([close?.(), delay(2000)])
  process.exit(0)
}

/** Returns a generator of numbers from 0 to 1, seeded by `options.seed`. */
export function createNumbers() {
  let state = [...options.seed].reduce(
    (sum, letter) => (Math.imul(sum, 31) + letter.charCodeAt(0)) | 0,
    7,
  )
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
