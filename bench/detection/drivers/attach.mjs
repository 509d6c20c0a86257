import { spawn } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { flags, options } from './common.mjs'

/**
 * Starts a Chromium window with only a debugging port, and returns its URL. Port 0 would make navigator.webdriver true.
 */
export async function plainChromium() {
  const port = `--remote-debugging-port=${options.port}`
  spawn(options.chromium, [...flags, `--user-data-dir=${options.folder}`, port, 'about:blank'], {
    stdio: 'ignore',
  })
  const address = `http://127.0.0.1:${options.port}`
  for (let attempt = 0; attempt < 200; attempt++) {
    if (await fetch(`${address}/json/version`).catch(() => undefined)) return address
    await delay(100)
  }
  throw new Error('the browser opened no debugging port')
}
