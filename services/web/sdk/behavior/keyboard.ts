import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, createClock, createSpread, type Listen, type Tracker } from './channel.ts'

const never = Number.NEGATIVE_INFINITY
// A hand that lets a mouse go needs longer than this to press a key.
const hastyMs = 60
// Fingers overlap or rest between two keys, and seldom do neither.
const abuttingMs = 8

/** The rhythm of typing. Which keys were pressed is only compared with what a keyboard can do, never sent. */
export function trackKeyboard(listen: Listen): Tracker<Behavior['keyboard']> {
  const channel = createChannel(noCounts)
  const isOffClock = createClock()
  const isShiftless = createShiftCheck()
  const pressed = new Map<string, { at: number; isCharacter: boolean }>()
  let isKeyed = false
  const lastUp = { key: never, button: never }
  let holds = createSpread()

  listen(['pointerup'], (event) => {
    if (event.isTrusted && event.pointerType === 'mouse') lastUp.button = event.timeStamp
  })
  listen(['keydown'], (event) => {
    isKeyed = true
    if (event.repeat) return
    const { counts } = channel
    channel.record(event)
    counts.keys++
    const isCharacter = event.key.length === 1
    if (isCharacter && pressed.size === 0 && event.timeStamp - lastUp.key < abuttingMs)
      counts.abutting++
    if (isCharacter && event.isTrusted && event.timeStamp - lastUp.button < hastyMs) counts.hasty++
    if (isLetterKey(event)) counts.letters++
    lastUp.button = never
    if (isCharacter && [...pressed.values()].some((other) => other.isCharacter)) counts.rollovers++
    if (event.key === 'Backspace' || event.key === 'Delete') counts.corrections++
    if (isShiftless(event)) counts.shiftless++
    if (isMalformed(event)) counts.malformed++
    if (isOffClock(event)) counts.off_clock++
    pressed.set(event.code, { at: event.timeStamp, isCharacter })
  })
  listen(['keypress'], (event) => {
    if (event.isTrusted && !isKeyed) channel.counts.unkeyed++
    isKeyed = false
  })
  listen(['keyup'], (event) => {
    if (isOffClock(event)) channel.counts.off_clock++
    const press = pressed.get(event.code)
    if (press) holds.add(event.timeStamp - press.at)
    lastUp.key = press?.isCharacter ? event.timeStamp : never
    pressed.delete(event.code)
  })
  // A release outside of the window is never seen; a key must not count as pressed for ever.
  listen(['blur'], () => pressed.clear())

  return {
    drain() {
      const summary = { ...channel.drain(), hold_mean: holds.mean(), hold_std: holds.deviation() }
      holds = createSpread()
      return summary
    },
  }
}

function noCounts() {
  const traces = { shiftless: 0, malformed: 0, unkeyed: 0, off_clock: 0, hasty: 0 }
  return { keys: 0, letters: 0, rollovers: 0, abutting: 0, corrections: 0, ...traces }
}

// Keyboards on a screen send 229 in place of the letter's number.
function isLetterKey({ isTrusted, key, keyCode }: KeyboardEvent): boolean {
  return isTrusted && keyCode !== 229 && /^[a-z]$/i.test(key)
}

// Tells what no keyboard types without Shift: `@` of the key 2, or a capital right after a small letter. A lone
// capital may be Caps Lock, which some browsers do not report. A letter that is not of its key is a text expander's.
function createShiftCheck(): (event: KeyboardEvent) => boolean {
  let wasCapital: boolean | undefined
  return (event) => {
    const { code, key, isTrusted } = event
    const isPlain = isTrusted && !hasModifier(event)
    const isLetter = isPlain && /^[a-z]$/i.test(key) && code === `Key${key.toUpperCase()}`
    const isCapital = isLetter ? key !== key.toLowerCase() : undefined
    const flips = isCapital !== undefined && wasCapital !== undefined && isCapital !== wasCapital
    wasCapital = isCapital
    return flips || (isPlain && key === '@' && code === 'Digit2')
  }
}

function hasModifier(event: KeyboardEvent): boolean {
  const { shiftKey, ctrlKey, altKey, metaKey } = event
  const isHeld = shiftKey || ctrlKey || altKey || metaKey
  return isHeld || event.getModifierState('CapsLock') || event.getModifierState('AltGraph')
}

// A browser fills in the number of a letter or digit, and the side of a modifier; who makes an event may forget.
function isMalformed({ isTrusted, code, key, keyCode, location }: KeyboardEvent): boolean {
  if (!isTrusted) return false
  if (/^(Shift|Control|Alt|Meta)(Left|Right)$/.test(code)) return location === 0
  return keyCode === 0 && /^[a-z0-9]$/i.test(key) && /^(Key[A-Z]|Digit[0-9])$/.test(code)
}
