import { openBrowser } from './chromium.ts'
import { followCli } from './cli-lines.ts'
import { eventually } from './eventually.ts'
import { createRest } from './rest.ts'
import type { RunningTidegate } from './tidegate.ts'

/** Teaches Chromium's engine with `tidegate learn` and a headless browser. Resolves with the page's result text. */
export async function teachChromium(dataDir: string): Promise<string> {
  const learning = followCli(['learn'], { DATA_DIR: dataDir })
  const url = /http:\S+/.exec(await learning.line(/^Open http/))?.[0] ?? ''
  await using browser = await openBrowser()
  const { page } = browser
  await page.goto(url)
  await page.waitForFunction("document.getElementById('state').textContent.includes('Learned')")
  const shown = await page.textContent('#state')
  learning.end()
  const { code, stderr } = await learning.result
  if (code !== 0) throw new Error(`tidegate learn ended with ${code}: ${stderr}`)
  return shown ?? ''
}

/** Returns the evidence sources of a demo-page session in a headless Chromium. */
export async function sourcesOfDemo({
  baseUrl,
  credentials,
}: Pick<RunningTidegate, 'baseUrl' | 'credentials'>): Promise<string[]> {
  await using browser = await openBrowser()
  const { page } = browser
  await page.goto(`${baseUrl}/demo?auto=1`)
  const result = await page.waitForSelector('#result[data-state="done"]')
  const sessionId = (await result.getAttribute('data-session-id')) ?? ''
  return (
    (await createRest(baseUrl, credentials.live.secret_key).session(sessionId)).evidence?.sources ??
    []
  )
}

/** Waits until new sessions of a headless Chromium are compared with the taught answers. */
export async function countsForChromium(tidegate: RunningTidegate): Promise<void> {
  const isCounted = async () => {
    if (!(await sourcesOfDemo(tidegate)).includes('learned_answers'))
      throw new Error('not counted yet')
  }
  await eventually(isCounted, { timeoutMs: 30_000 })
}
