import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Case } from './cases.ts'
import { findProgram } from './desktop.ts'
import { pause } from './hand.ts'
import { browserVersions, miniBrowser } from './versions.ts'
import { type Browser, type Person, visitBy } from './visit.ts'

export const extension = (name: string) => [
  `--load-extension=${path.join(import.meta.dirname, 'extensions', name)}`,
  '--disable-features=DisableLoadExtensionCommandLineSwitch',
]

const people: Person[] = [
  { name: 'chromium', browser: 'Chromium' },
  { name: 'chromium-looks', browser: 'Chromium', way: 'nothing' },
  { name: 'chromium-keyboard', browser: 'Chromium', way: 'keyboard' },
  {
    name: 'chromium-zoom',
    browser: 'Chromium',
    first: ['key', 'ctrl+plus', ...pause(300), 'key', 'ctrl+plus'],
  },
  {
    name: 'chromium-arabic',
    browser: 'Chromium',
    flags: ['--lang=ar'],
    env: { LANGUAGE: 'ar', TZ: 'Asia/Riyadh' },
  },
  {
    name: 'chromium-japanese',
    browser: 'Chromium',
    flags: ['--lang=ja'],
    env: { LANGUAGE: 'ja', TZ: 'Asia/Tokyo' },
  },
  { name: 'chromium-devtools', browser: 'Chromium', flags: ['--auto-open-devtools-for-tabs'] },
  { name: 'chromium-incognito', browser: 'Chromium', flags: ['--incognito'] },
  { name: 'chromium-slow', browser: 'Chromium', busy: 3 },
  {
    name: 'chromium-accessibility',
    browser: 'Chromium',
    flags: ['--force-renderer-accessibility'],
    way: 'keyboard',
  },
  {
    name: 'chromium-user-agent-switcher',
    browser: 'Chromium',
    flags: extension('user-agent'),
    extends: true,
  },
  { name: 'chromium-canvas-noise', browser: 'Chromium', flags: extension('canvas-noise'), extends: true },
  { name: 'chromium-small-window', browser: 'Chromium', flags: ['--window-size=640,720'] },
  { name: 'chromium-maximized', browser: 'Chromium', flags: ['--start-maximized'] },
  { name: 'chromium-scaled', browser: 'Chromium', flags: ['--force-device-scale-factor=1.5'] },
  { name: 'chromium-no-gpu', browser: 'Chromium', flags: ['--disable-gpu', '--disable-3d-apis'] },
  { name: 'firefox', browser: 'Firefox' },
  { name: 'firefox-looks', browser: 'Firefox', way: 'nothing' },
  { name: 'firefox-keyboard', browser: 'Firefox', way: 'keyboard' },
  { name: 'firefox-private', browser: 'Firefox', flags: ['--private-window'] },
  {
    name: 'firefox-resists',
    browser: 'Firefox',
    settings: { 'privacy.resistFingerprinting': true },
    ratio: 1,
  },
  { name: 'firefox-german', browser: 'Firefox', settings: { 'intl.accept_languages': 'de-DE,de,en' } },
  { name: 'webkitgtk', browser: 'WebKitGTK' },
  { name: 'webkitgtk-looks', browser: 'WebKitGTK', way: 'nothing' },
  { name: 'qtwebengine', browser: 'QtWebEngine' },
  { name: 'qtwebengine-looks', browser: 'QtWebEngine', way: 'nothing' },
]

const quiet = ['--no-sandbox', '--no-first-run', '--no-default-browser-check', '--disable-sync']
const window = ['--window-size=1400,940', '--window-position=60,40']

export const openers: Record<Browser, (person: Person, folder: string) => string[]> = {
  Chromium: ({ flags = [] }, folder) => {
    const own = [...quiet, '--password-store=basic', `--user-data-dir=${folder}`]
    return [findProgram('chromium'), ...own, ...window, ...flags]
  },
  Firefox: ({ flags = [], settings = {} }, folder) => {
    writeFileSync(path.join(folder, 'user.js'), userJs({ ...calmFirefox, ...settings }))
    const size = ['--width', '1400', '--height', '940']
    return [
      findProgram('firefox-esr'),
      '--profile',
      folder,
      '--no-remote',
      '--new-instance',
      ...size,
      ...flags,
    ]
  },
  WebKitGTK: () => {
    if (!miniBrowser) throw new Error('there is no MiniBrowser: apt-get install webkit2gtk-driver')
    return [miniBrowser, '--geometry=1400x940']
  },
  QtWebEngine: (_person, folder) => {
    const own = [
      '--basedir',
      folder,
      '--qt-flag',
      'no-sandbox',
      '-s',
      'input.insert_mode.auto_leave',
      'false',
    ]
    return [findProgram('qutebrowser'), ...own]
  },
}

/** First-run pages would cover the page. */
const calmFirefox = {
  'browser.aboutwelcome.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'termsofuse.bypassNotification': true,
  'browser.preonboarding.enabled': false,
}

function userJs(settings: Record<string, string | boolean | number>): string {
  return Object.entries(settings)
    .map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`)
    .join('')
}

const versions = browserVersions()

/** The same person on a machine of a twentieth of the speed. */
const throttled = (person: Person): Person => ({ ...person, name: `${person.name}-throttled`, isSlow: true })

const caseOf = (person: Person): Case => ({
  name: `person-${person.name}`,
  kind: 'person',
  family: person.browser,
  framework: 'by hand',
  version: versions[person.browser] ?? '',
  isSlow: person.isSlow === true,
  run: (stage, onOutcome) => visitBy(person, { stage, onOutcome, open: openers[person.browser] }),
})

export const personCases: Case[] = [...people, ...people.map(throttled)].map(caseOf)
