import { define, descriptorOf, realmConsole, realmWindow } from '../realm.ts'
import { readOrNull, yieldToPage } from '../support.ts'
import { isV8 } from './environment.ts'
import { isForeign, restore } from './natives.ts'

/**
 * Detects readers of logged values: developer tools, or a driver that has enabled CDP's Runtime domain. V8 then formats
 * the stack of a logged error through `prepareStackTrace` (`stack`), and reads its name once more than its message
 * (`getter`). Other engines always do the latter.
 */
export async function consoleReaders(): Promise<string[]> {
  const frame = realmWindow ? await readersOf('frame', realmConsole, realmWindow.Error) : []
  // A console wrapped by the page, as error trackers do, reads values itself; use only the frame's then.
  const isWrapped = isForeign({ code: console.debug, name: 'debug' })
  return isWrapped && realmWindow ? frame : [...(await readersOf('page', console, Error)), ...frame]
}

async function readersOf(
  where: string,
  { debug }: Console,
  errors: ErrorConstructor,
): Promise<string[]> {
  const stack = readOrNull(() => formatsStack(debug, errors)) ?? false
  await yieldToPage()
  const getter = readOrNull(() => isV8() && readsName(debug, errors)) ?? false
  await yieldToPage()
  return [...(stack ? [`${where}.stack`] : []), ...(getter ? [`${where}.getter`] : [])]
}

const hook = 'prepareStackTrace'

function formatsStack(debug: Console['debug'], errors: ErrorConstructor): boolean {
  const before = descriptorOf(errors, hook)
  let formatted = false
  const spy = () => {
    formatted = true
    return ''
  }
  define(errors, hook, { value: spy, configurable: true, writable: true })
  try {
    debug(new errors(''))
  } finally {
    // Restores the page's own hook, if any.
    restore(errors, hook, before)
  }
  return formatted
}

function readsName(debug: Console['debug'], errors: ErrorConstructor): boolean {
  const bait = new errors('')
  let [names, messages] = [0, 0]
  define(bait, 'name', { get: () => `${++names}`, configurable: true })
  define(bait, 'message', { get: () => `${++messages}`, configurable: true })
  debug(bait)
  return names > messages
}
