import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** Installed browser that can be started unattended with a temporary profile. */
export interface InstalledBrowser {
  program: string
  args: (profile: string) => string[]
}

const isRoot = process.getuid?.() === 0
const headlessChromium = (profile: string) => [
  '--headless=new',
  '--disable-gpu',
  '--no-first-run',
  `--user-data-dir=${profile}`,
  // Chromium's sandbox does not work for root, as in a container.
  ...(isRoot ? ['--no-sandbox'] : []),
]

// A single browser per engine is enough. MiniBrowser belongs to WebKitGTK and needs a display.
const engines: { programs: string[]; args: InstalledBrowser['args'] }[] = [
  {
    programs: [
      'chromium',
      'chromium-browser',
      'google-chrome',
      'google-chrome-stable',
      'microsoft-edge',
      '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    ],
    args: headlessChromium,
  },
  {
    programs: ['firefox', 'firefox-esr', '/Applications/Firefox.app/Contents/MacOS/firefox'],
    args: (profile) => ['--headless', '--no-remote', '--profile', profile],
  },
  {
    programs: ['4.1', '4.0', '6.0'].flatMap((version) =>
      ['x86_64', 'aarch64'].map(
        (cpu) => `/usr/lib/${cpu}-linux-gnu/webkit2gtk-${version}/MiniBrowser`,
      ),
    ),
    args: () => [],
  },
]

/** Returns the first installed browser of each engine. */
export function installedBrowsers(): InstalledBrowser[] {
  return engines.flatMap(({ programs, args }) => {
    const program = programs.map(findProgram).find((file) => file !== undefined)
    return program === undefined ? [] : [{ program, args }]
  })
}

function findProgram(name: string): string | undefined {
  const folders = name.includes('/') ? [''] : (process.env.PATH ?? '').split(path.delimiter)
  return folders.map((folder) => path.join(folder, name)).find((file) => existsSync(file))
}

/** Opens the page in the browser, and closes the browser when `untilDone` settles. Rejects if `untilDone` rejects. */
export async function showPage(
  { program, args }: InstalledBrowser,
  url: string,
  untilDone: () => Promise<unknown>,
): Promise<void> {
  const profile = await mkdtemp(path.join(tmpdir(), 'tidegate-browser-'))
  const needsDisplay =
    program.endsWith('MiniBrowser') && !process.env.DISPLAY && !process.env.WAYLAND_DISPLAY
  const xvfb = needsDisplay ? findProgram('xvfb-run') : undefined
  const command = [...(xvfb ? [xvfb, '-a'] : []), program, ...args(profile), url]
  // A process group, because a browser is several processes.
  const browser = spawn(command[0] ?? program, command.slice(1), {
    stdio: 'ignore',
    detached: true,
  })
  // `once` rejects if the program cannot be started.
  const ended = once(browser, 'exit').catch(() => {})
  try {
    await untilDone()
  } finally {
    const isRunning = browser.exitCode === null && browser.signalCode === null
    if (browser.pid !== undefined && isRunning) process.kill(-browser.pid, 'SIGTERM')
    await ended
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}
