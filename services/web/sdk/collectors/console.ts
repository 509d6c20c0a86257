import { define, descriptorOf, realmConsole, realmWindow } from '../realm.ts'
import { readOrNull, yieldToPage } from '../support.ts'
import { isV8 } from './environment.ts'
import { isForeign, restore } from './natives.ts'

/**
 * Ways in which something is seen to read what is logged, as developer tools do and a driver that has enabled the
 * Runtime domain. V8 then formats the stack of a logged error by a hook of its own (`stack`). It also reads its
 * name once more than its message (`getter`), which other engines always do.
 */
export async function consoleReaders(): Promise<string[]> {
  const frame = realmWindow ? await readersOf('frame', realmConsole, realmWindow.Error) : []
  // A console that the page wraps, as error trackers do, reads by itself; the frame's is enough then.
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
    // The page may have a hook of its own; it must not notice that it was away.
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
