import { openBrowser } from '../chromium.ts'
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import { handOffScript, type PageLoad, startPageSite } from '../page-site.ts'
import { interleave, type Turns } from '../rounds.ts'
import { spreadOf } from '../stats.ts'

/** Same as "4x slowdown" in the developer tools. */
const slowdown = 4

/**
 * Measures the longest task of a page's main thread from load to hand-off in a slowed Chromium, compared with a page
 * that only creates an empty frame and a WebGL context, which a browser cannot split into several tasks.
 */
export async function measureMainThread(
  environment: Environment,
  turns: Turns,
): Promise<Measurement[]> {
  const server = await environment.startAllInOne()
  const { publishable_key } = (await environment.credentials()).live
  const browser = await openBrowser()
  const site = await startPageSite()
  const load = (script: string) => () => site.load(browser, slowdown, script)
  try {
    const { sdk = [], floor = [] } = await interleave(turns, [
      { name: 'sdk', run: load(handOffScript(server.url, publishable_key)) },
      { name: 'floor', run: load(loadNothing) },
    ])
    const line = toLine(environment)
    return [
      {
        ...line('longest task of a page with the SDK', sdk),
        aim: { direction: 'at most', value: 50 },
      },
      line('longest task of a page with an empty frame and a WebGL context', floor),
    ]
  } finally {
    site.close()
    await browser.close()
    await server.stop()
  }
}

function toLine({ logName: log }: Environment) {
  return (name: string, loads: PageLoad[]): Measurement => ({
    name: `${name}, at a fourth of the speed`,
    log,
    unit: 'ms',
    // Browsers report only tasks of 50 ms or more.
    value: spreadOf(loads.map(({ long }) => Math.max(50, ...long))),
    details: {
      'tasks over 50 ms': loads.flatMap(({ long }) => long).length,
      loads: loads.length,
      'ms to the hand-off': spreadOf(loads.map(({ doneMs }) => doneMs)).median,
    },
  })
}

const loadNothing = `
  const frame = document.createElement('iframe')
  frame.hidden = true
  document.body.append(frame)
  await new Promise((resolve) => setTimeout(resolve))
  document.createElement('canvas').getContext('webgl')`
