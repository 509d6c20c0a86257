import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Case } from './cases.ts'
import { findProgram } from './desktop.ts'
import { people } from './persons.ts'
import { browserVersions, miniBrowser } from './versions.ts'
import { type Browser, type Person, visitBy } from './visit.ts'

const quiet = ['--no-sandbox', '--no-first-run', '--no-default-browser-check', '--disable-sync']
const window = ['--window-size=1400,940', '--window-position=60,40']

export const openers: Record<Browser, (person: Person, folder: string) => string[]> = {
  Chromium: ({ flags = [] }, folder) => {
    const own = [...quiet, '--password-store=basic', `--user-data-dir=${folder}`]
    return [findProgram('chromium'), ...own, ...window, ...flags]
  },
  Firefox: ({ flags = [], settings = {}, scriptlets = false }, folder) => {
    if (scriptlets) writeScriptlets(folder)
    writeFileSync(path.join(folder, 'user.js'), userJs({ ...calmFirefox, ...settings }))
    const size = ['--width', '1400', '--height', '940']
    return [
      'env',
      ...(scriptlets ? [`HOME=${folder}`] : []),
      findProgram('firefox-esr'),
      '--profile',
      folder,
      '--no-remote',
      '--new-instance',
      ...size,
      ...flags,
    ]
  },
  WebKitGTK: ({ flags = [] }) => {
    if (!miniBrowser) throw new Error('there is no MiniBrowser: apt-get install webkit2gtk-driver')
    return [miniBrowser, '--geometry=1400x940', ...flags]
  },
  QtWebEngine: ({ flags = [] }, folder) => {
    const own = [
      '--basedir',
      folder,
      '--qt-flag',
      'no-sandbox',
      '-s',
      'input.insert_mode.auto_leave',
      'false',
    ]
    return [findProgram('qutebrowser'), ...own, ...flags]
  },
}

/** Disables first-run pages, which would cover the page. */
const calmFirefox = {
  // Disables extensions that are installed for all users.
  'extensions.enabledScopes': 5,
  'browser.aboutwelcome.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'termsofuse.bypassNotification': true,
  'browser.preonboarding.enabled': false,
}

const blocker = 'uBlock0@raymondhill.net'
const filters = [
  'json-prune, advert',
  'set, adsbygoogle.loaded, true',
  'nostif, advert',
  'aeld, advert',
  'no-fetch-if, advert',
]

/** Writes a user's filters for uBlock Origin as managed settings. */
function writeScriptlets(home: string): void {
  const folder = path.join(home, '.mozilla/managed-storage')
  mkdirSync(folder, { recursive: true })
  const data = { toOverwrite: { filters: filters.map((filter) => `127.0.0.1##+js(${filter})`) } }
  const manifest = { name: blocker, description: 'Filters', type: 'storage', data }
  writeFileSync(path.join(folder, `${blocker}.json`), JSON.stringify(manifest))
}

function userJs(settings: Record<string, string | boolean | number>): string {
  return Object.entries(settings)
    .map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`)
    .join('')
}

const versions = browserVersions()

/** Returns the same person on a machine with a twentieth of the speed. */
const throttled = (person: Person): Person => ({
  ...person,
  name: `${person.name}-throttled`,
  isSlow: true,
})

const caseOf = (person: Person): Case => ({
  name: `person-${person.name}`,
  kind: 'person',
  family: person.browser,
  framework: 'by hand',
  version: versions[person.browser] ?? '',
  isSlow: person.isSlow === true,
  run: (stage, onOutcome) => visitBy(person, { stage, onOutcome, open: openers[person.browser] }),
})

// Each engine, with each kind of input and without input.
const onFresh = people.filter(({ name }) =>
  /^(chromium|firefox|webkitgtk)(-looks|-keyboard)?$/.test(name),
)

export const personCases: Case[] = [
  ...[...people, ...people.filter(({ busy }) => !busy).map(throttled)].map(caseOf),
  ...onFresh.map(caseOf).map((each) => ({ ...each, name: `${each.name}-fresh`, isFresh: true })),
]
