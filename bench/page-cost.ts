import path from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { buildSdk } from '../services/web/build-sdk.ts'
import { openBrowser } from './chromium.ts'
import { startEnvironment } from './environment.ts'
import { handOffScript, type PageLoad, startPageSite } from './page-site.ts'
import { interleave } from './rounds.ts'
import { spreadOf } from './stats.ts'

// Measures the cost of the browser SDK to a page, in turns with FingerprintJS and BotD in the same browser
// (`make page-cost`).

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    /** Comma-separated factors by which the browser is slowed. */
    slowdowns: { type: 'string', default: '1,6' },
  },
})
const peers = `
  import FingerprintJS from '@fingerprintjs/fingerprintjs'
  import { load } from '@fingerprintjs/botd'
  export const run = () => Promise.all([
    FingerprintJS.load({ monitoring: false }).then((agent) => agent.get()),
    load({ monitoring: false }).then((detector) => detector.detect()),
  ])`

async function bundlePeers(): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: peers, resolveDir: path.join(import.meta.dirname, 'page-peers') },
    bundle: true,
    minify: true,
    format: 'esm',
    legalComments: 'none',
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

function report(slowdown: number, loads: Record<string, PageLoad[]>): void {
  const median = (name: string, of: (load: PageLoad) => number) =>
    spreadOf((loads[name] ?? []).map(of)).median
  const net = (name: string, field: 'tasksMs' | 'cpuMs' | 'doneMs') =>
    Math.round(median(name, (load) => load[field]) - median('empty', (load) => load[field]))
  for (const name of ['ours', 'theirs']) {
    const longest = Math.round(median(name, ({ long }) => Math.max(0, ...long)))
    console.log(
      `${slowdown}x ${name}: main thread ${net(name, 'tasksMs')} ms (CPU ${net(name, 'cpuMs')} ms), done after ${net(name, 'doneMs')} ms, longest task ${longest ? `${longest} ms` : 'below 50 ms'}`,
    )
  }
}

const sdk = await buildSdk()
const theirs = await bundlePeers()
for (const [name, code] of Object.entries({ ours: sdk, theirs }))
  console.log(`${name}: ${gzipSync(code, { level: 9 }).length} bytes gzipped`)
const environment = await startEnvironment(undefined)
const server = await environment.startAllInOne()
const { publishable_key: publishableKey } = (await environment.credentials()).live
const browser = await openBrowser()
const site = await startPageSite({ '/theirs.js': theirs })
try {
  for (const slowdown of flags.slowdowns.split(',').map(Number)) {
    const load = (script: string) => () => site.load(browser, slowdown, script)
    const variants = [
      { name: 'empty', run: load('') },
      { name: 'ours', run: load(handOffScript(server.url, publishableKey)) },
      { name: 'theirs', run: load(`await (await import('/theirs.js')).run()`) },
    ]
    report(slowdown, await interleave({ rounds: Number(flags.rounds), warmUps: 1 }, variants))
  }
} finally {
  site.close()
  await browser.close()
  await server.stop()
  await environment.stop()
}
