import type { Snapshot } from '../../../../schemas/observations.ts'
import { booleanOf, member, readOrNull, textOf } from '../support.ts'

type Automation = Snapshot['automation']

/** Globals that drivers leave in a page, by exact name: looser patterns also match wallets and page code. */
const driverGlobals = [
  '__webdriver_evaluate',
  '__webdriver_script_function',
  '__webdriver_script_func',
  '__webdriver_script_fn',
  '__webdriver_unwrapped',
  '__driver_evaluate',
  '__driver_unwrapped',
  '__fxdriver_evaluate',
  '__fxdriver_unwrapped',
  '__selenium_evaluate',
  '__selenium_unwrapped',
  '__webdriverFunc',
  '__lastWatirAlert',
  '__lastWatirConfirm',
  '__lastWatirPrompt',
  '_Selenium_IDE_Recorder',
  '_selenium',
  'calledSelenium',
  '$chrome_asyncScriptInfo',
  '$cdc_asdjflasutopfhvcZLmcfl_',
  '__$webdriverAsyncExecutor',
  '__pwInitScripts',
  '__playwright__binding__',
  '__puppeteer_evaluation_script__',
  '__nightmare',
  '__phantomas',
  '_phantom',
  'callPhantom',
  'domAutomation',
  'domAutomationController',
  'awesomium',
  'CefSharp',
  'RunPerfTest',
  'fmget_targets',
  'wdioElectron',
]
/** `cdc_adoQpoasnfa76pfcZLmcfl_Array` and the like: the 22 characters in the middle are random. */
const chromedriverMarker = /^[a-z]{3}_[A-Za-z0-9]{22}_(Array|Promise|Symbol|Object|Proxy|JSON|Window)$/

export function collectAutomation(): Omit<Automation, 'webdriver_iframe' | 'webdriver_worker'> {
  return {
    webdriver: readOrNull(() => booleanOf(navigator.webdriver)),
    webdriver_own_property: readOrNull(
      () => Object.getOwnPropertyDescriptor(navigator, 'webdriver') !== undefined,
    ),
    globals: readOrNull(findGlobals) ?? [],
    document_attributes: readOrNull(findAttributes) ?? [],
    cdp_runtime: readOrNull(consoleIsRead),
    sequentum: readOrNull(() => /sequentum/i.test(String(member(window, 'external')))),
    electron: readOrNull(isElectron),
  }
}

function findGlobals(): string[] {
  const known = driverGlobals.filter((name) => name in window || name in document)
  const marked = Object.getOwnPropertyNames(window).filter((name) => chromedriverMarker.test(name))
  return [...new Set([...known, ...marked])]
}

function findAttributes(): string[] {
  const names = document.documentElement.getAttributeNames()
  return names.filter((name) => /^(selenium|webdriver|driver)$/i.test(name))
}

/**
 * Whether something reads what is logged to the console as it is logged: developer tools, or a driver that has
 * enabled the Runtime domain. V8 formats the stack of a logged error only then, by this hook of its own.
 */
function consoleIsRead(): boolean {
  const hook = 'prepareStackTrace'
  const before = Object.getOwnPropertyDescriptor(Error, hook)
  let read = false
  const spy = () => {
    read = true
    return ''
  }
  Object.defineProperty(Error, hook, { value: spy, configurable: true, writable: true })
  try {
    console.debug(new Error(''))
  } finally {
    // The page may have a hook of its own; it must not notice that it was away.
    if (before) Object.defineProperty(Error, hook, before)
    else Reflect.deleteProperty(Error, hook)
  }
  return read
}

function isElectron(): boolean {
  const process = member(window, 'process')
  const electron = member(member(process, 'versions'), 'electron')
  return (
    textOf(electron) !== null ||
    member(process, 'type') === 'renderer' ||
    /Electron\//.test(navigator.userAgent)
  )
}
