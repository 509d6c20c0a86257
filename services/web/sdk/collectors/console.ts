import { define, descriptorOf, realmConsole, realmWindow } from '../realm.ts'
import { tryOrNull, yieldToPage } from '../support.ts'
import { isV8 } from './environment.ts'
import { isForeign, restore } from './natives.ts'

/**
 * Detects readers of logged values: developer tools, or a driver that has enabled CDP's Runtime domain. V8 then formats
 * the stack of a logged error with `prepareStackTrace` (reported as `stack`), and reads `name` one time more often than
 * `message` (`getter`, for V8 only, because other engines always do this).
 */
export async function detectConsoleReaders(): Promise<string[]> {
  const frame = realmWindow ? await readersOf('frame', realmConsole, realmWindow.Error) : []
  // Error trackers wrap the page's console and read the values themselves, so only the frame's console counts then.
  const isWrapped = isForeign({ code: console.debug, name: 'debug' })
  return isWrapped && realmWindow ? frame : [...(await readersOf('page', console, Error)), ...frame]
}

async function readersOf(
  where: string,
  { debug }: Console,
  ErrorClass: ErrorConstructor,
): Promise<string[]> {
  const stack = tryOrNull(() => formatsStack(debug, ErrorClass)) ?? false
  await yieldToPage()
  const getter = tryOrNull(() => isV8() && readsName(debug, ErrorClass)) ?? false
  await yieldToPage()
  return [...(stack ? [`${where}.stack`] : []), ...(getter ? [`${where}.getter`] : [])]
}

const hook = 'prepareStackTrace'

function formatsStack(debug: Console['debug'], ErrorClass: ErrorConstructor): boolean {
  const before = descriptorOf(ErrorClass, hook)
  let formatted = false
  const spy = () => {
    formatted = true
    return ''
  }
  define(ErrorClass, hook, { value: spy, configurable: true, writable: true })
  try {
    debug(new ErrorClass(''))
  } finally {
    // The page may have a hook of its own.
    restore(ErrorClass, hook, before)
  }
  return formatted
}

function readsName(debug: Console['debug'], ErrorClass: ErrorConstructor): boolean {
  const bait = new ErrorClass('')
  let [names, messages] = [0, 0]
  define(bait, 'name', { get: () => `${++names}`, configurable: true })
  define(bait, 'message', { get: () => `${++messages}`, configurable: true })
  debug(bait)
  return names > messages
}
