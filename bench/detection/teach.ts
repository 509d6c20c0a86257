import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'

const root = path.resolve(import.meta.dirname, '../..')

/** A browser that opens a page by itself, without anything that drives it. */
const browsers: Record<string, (folder: string) => string[]> = {
  blink: (folder) => ['chromium', '--headless', '--no-sandbox', `--user-data-dir=${folder}`, '--disable-gpu'],
  gecko: (folder) => ['firefox-esr', '--headless', '--no-remote', '--profile', folder],
}

const withinMs = 60_000

/** Lets Chromium and Firefox of this machine answer the questions of the deployment with these settings. */
export async function teach(settings: Record<string, string>): Promise<void> {
  const learning = spawn(process.execPath, ['services/cli/main.ts', 'learn'], {
    cwd: root,
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const signal = AbortSignal.timeout(withinMs)
  try {
    const lines = createInterface(learning.stdout)
    const url = /http\S+/.exec(String(await once(lines, 'line', { signal })))?.[0] ?? ''
    for (const [engine, command] of Object.entries(browsers)) {
      const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-teach-'))
      const [file = '', ...args] = command(folder)
      const browser = spawn(file, [...args, url], { stdio: 'ignore' })
      const [said] = await once(lines, 'line', { signal })
      if (!String(said).startsWith(engine)) throw new Error(`${file}: ${said}`)
      console.log(said)
      browser.kill()
      await once(browser, 'exit')
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    }
  } finally {
    learning.kill()
  }
}
