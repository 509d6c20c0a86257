import type { Snapshot } from '../../../../schemas/observations.ts'
import { descriptorOf, ownNames, readNavigator } from '../realm.ts'
import { booleanOrNull, member, textOrNull, tryOrNull } from '../support.ts'
import { detectConsoleReaders } from './console.ts'

// Global names that drivers leave in a page. Exact, because looser patterns also match wallets and page code.
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

/** Collects traces of automation. `console_readers` has those of page and frame; the caller adds the worker's. */
export async function collectAutomation(): Promise<
  Omit<Snapshot['automation'], 'webdriver_iframe' | 'webdriver_worker' | 'cdp_runtime'>
> {
  return {
    webdriver: tryOrNull(readWebdriver),
    webdriver_own_property: tryOrNull(() => descriptorOf(navigator, 'webdriver') !== undefined),
    globals: tryOrNull(findGlobals) ?? [],
    document_attributes: tryOrNull(findAttributes) ?? [],
    console_readers: await detectConsoleReaders().catch(() => []),
    sequentum: tryOrNull(() => /sequentum/i.test(String(member(window, 'external')))),
    electron: tryOrNull(isElectron),
  }
}

// Returns true if the flag is set on the page's `navigator`, or according to the clean realm's getter.
function readWebdriver(): boolean | null {
  const inPage = booleanOrNull(navigator.webdriver)
  return inPage || (booleanOrNull(readNavigator('webdriver')) ?? inPage)
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
    textOrNull(electron) !== null ||
    member(process, 'type') === 'renderer' ||
    /Electron\//.test(navigator.userAgent)
  )
}
