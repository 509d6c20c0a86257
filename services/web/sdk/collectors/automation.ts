import type { Snapshot } from '../../../../schemas/observations.ts'
import { descriptorOf, ownNames, readNavigator } from '../realm.ts'
import { booleanOf, member, readOrNull, textOf } from '../support.ts'
import { consoleReaders } from './console.ts'

// Globals that drivers leave in a page. Exact names, because looser patterns also match wallets and page code.
const driverGlobals =
  `__webdriver_evaluate __webdriver_script_function __webdriver_script_func __webdriver_script_fn
  __webdriver_unwrapped __driver_evaluate __driver_unwrapped __fxdriver_evaluate __fxdriver_unwrapped
  __selenium_evaluate __selenium_unwrapped __webdriverFunc __lastWatirAlert __lastWatirConfirm __lastWatirPrompt
  _Selenium_IDE_Recorder _selenium calledSelenium $chrome_asyncScriptInfo $cdc_asdjflasutopfhvcZLmcfl_
  __$webdriverAsyncExecutor __pwInitScripts __playwright__binding__ __puppeteer_evaluation_script__ __nightmare
  __phantomas _phantom callPhantom domAutomation domAutomationController awesomium CefSharp RunPerfTest
  fmget_targets wdioElectron`.split(/\s+/)
// `cdc_adoQpoasnfa76pfcZLmcfl_Array` and the like: the 22 characters in the middle are random.
const chromedriverMarker =
  /^[a-z]{3}_[A-Za-z0-9]{22}_(Array|Promise|Symbol|Object|Proxy|JSON|Window)$/

/** Collects traces of automation. `console_readers` covers page and frame; the caller adds the worker's. */
export async function collectAutomation(): Promise<
  Omit<Snapshot['automation'], 'webdriver_iframe' | 'webdriver_worker' | 'cdp_runtime'>
> {
  return {
    webdriver: readOrNull(webdriver),
    webdriver_own_property: readOrNull(() => descriptorOf(navigator, 'webdriver') !== undefined),
    globals: readOrNull(findGlobals) ?? [],
    document_attributes: readOrNull(findAttributes) ?? [],
    console_readers: await consoleReaders().catch(() => []),
    sequentum: readOrNull(() => /sequentum/i.test(String(member(window, 'external')))),
    electron: readOrNull(isElectron),
  }
}

// Returns true if either the native getter or the page's `navigator` reports it.
function webdriver(): boolean | null {
  const inPage = booleanOf(navigator.webdriver)
  return inPage || (booleanOf(readNavigator('webdriver')) ?? inPage)
}

function findGlobals(): string[] {
  const driverNames = driverGlobals.filter((name) => name in window || name in document)
  const chromedriverNames = ownNames(window).filter((name) => chromedriverMarker.test(name))
  return [...new Set([...driverNames, ...chromedriverNames])]
}

function findAttributes(): string[] {
  const names = document.documentElement.getAttributeNames()
  return names.filter((name) => /^(selenium|webdriver|driver)$/i.test(name))
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
