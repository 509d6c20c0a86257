import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, createOffClock, createStats, type Listen, type Tracker } from './channel.ts'

const never = Number.NEGATIVE_INFINITY
// A hand needs at least this long to get from the mouse to a key.
const hastyMs = 60
// A key pressed this soon after a release is abutting. When people type, keys overlap or have a pause between them.
const abuttingMs = 8

/** Tracks the rhythm of typing. Checks whether keys are plausible, but never sends them. */
export function trackKeyboard(listen: Listen): Tracker<Behavior['keyboard']> {
  const channel = createChannel(zeroCounts)
  const isOffClock = createOffClock()
  const isShiftless = createShiftCheck()
  const pressed = new Map<string, { at: number; isCharacter: boolean }>()
  let sawKeydown = false
  const lastUp = { key: never, button: never }
  let holds = createStats()

  listen(['pointerup'], (event) => {
    if (event.isTrusted && event.pointerType === 'mouse') lastUp.button = event.timeStamp
  })
  listen(['keydown'], (event) => {
    sawKeydown = true
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
    if (isCharacter && [...pressed.values()].some((press) => press.isCharacter)) counts.rollovers++
    if (event.key === 'Backspace' || event.key === 'Delete') counts.corrections++
    if (isShiftless(event)) counts.shiftless++
    if (isMalformed(event)) counts.malformed++
    if (isOffClock(event)) counts.off_clock++
    pressed.set(event.code, { at: event.timeStamp, isCharacter })
  })
  listen(['keypress'], (event) => {
    if (event.isTrusted && !sawKeydown) channel.counts.unkeyed++
    sawKeydown = false
  })
  listen(['keyup'], (event) => {
    if (isOffClock(event)) channel.counts.off_clock++
    const press = pressed.get(event.code)
    if (press) holds.add(event.timeStamp - press.at)
    lastUp.key = press?.isCharacter ? event.timeStamp : never
    pressed.delete(event.code)
  })
  // A release outside the window is not seen, so forget the pressed keys.
  listen(['blur'], () => pressed.clear())

  return {
    drain() {
      const summary = { ...channel.drain(), hold_mean: holds.mean(), hold_std: holds.deviation() }
      holds = createStats()
      return summary
    },
  }
}

function zeroCounts() {
  const traces = { shiftless: 0, malformed: 0, unkeyed: 0, off_clock: 0, hasty: 0 }
  return { keys: 0, letters: 0, rollovers: 0, abutting: 0, corrections: 0, ...traces }
}

// On-screen keyboards send 229 as `keyCode` of every letter.
function isLetterKey({ isTrusted, key, keyCode }: KeyboardEvent): boolean {
  return isTrusted && keyCode !== 229 && /^[a-z]$/i.test(key)
}

// Returns a predicate for characters that no keyboard types without Shift: `@` on the key 2, or a change of case
// between two letters. A single capital proves nothing, because some browsers do not report Caps Lock. A letter that
// does not match its key comes from a text expander.
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

// Returns true if `keyCode` or a modifier's `location` is missing, which browsers always set and tools often forget.
function isMalformed({ isTrusted, code, key, keyCode, location }: KeyboardEvent): boolean {
  if (!isTrusted) return false
  if (/^(Shift|Control|Alt|Meta)(Left|Right)$/.test(code)) return location === 0
  return keyCode === 0 && /^[a-z0-9]$/i.test(key) && /^(Key[A-Z]|Digit[0-9])$/.test(code)
}
