import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, type Listen, round, type Tracker } from './channel.ts'

// Changed text must follow a key, paste, drop or composition within this time.
const causeMs = 1000
// User actions that may move the focus, and the window's `focus` event, after which browsers restore it.
const focusCauses = [
  'pointerdown',
  'pointerup',
  'keydown',
  'touchend',
  'click',
  'submit',
  'focus',
] as const
// Input types of menu commands, which need no key press.
const menuInput = /^(history|deleteBy|insertFrom|insertReplacement|format)/

/** Tracks the order and timing of form input. Never reads the value, name or label of a field. */
export function trackForm(listen: Listen): Tracker<Behavior['form']> {
  const channel = createChannel(zeroCounts)
  const firstFocus = new WeakMap<EventTarget, number>()
  const lastCause = new WeakMap<EventTarget, number>()
  let lastUserAction = Number.NEGATIVE_INFINITY

  listen(['keydown', 'paste', 'drop', 'compositionupdate', 'compositionend'], (event) => {
    if (event.target) lastCause.set(event.target, event.timeStamp)
  })
  listen(focusCauses, ({ type, target, timeStamp, isTrusted }) => {
    if (isTrusted && (type !== 'focus' || target === window)) lastUserAction = timeStamp
  })
  listen(['focusin'], (event) => {
    const form = formOf(event.target)
    if (!form) return
    channel.record(event)
    channel.counts.focuses++
    if (event.timeStamp - lastUserAction > causeMs) channel.counts.uncaused_focuses++
    if (!firstFocus.has(form)) firstFocus.set(form, event.timeStamp)
  })
  listen(['input'], (event) => {
    if (!isTextField(event.target)) return
    channel.record(event)
    const { counts } = channel
    if (isAutofilled(event)) {
      counts.autofills++
      return
    }
    if (!hasFocus(event.target)) counts.unfocused_inputs++
    if (isSilentChange(event, lastCause.get(event.target))) {
      counts.silent_changes++
      if (isInserted(event)) counts.inserted++
    }
  })
  listen(['change'], (event) => {
    if (!formOf(event.target)) return
    channel.record(event)
    channel.counts.changes++
  })
  listen(['submit'], (event) => {
    channel.record(event)
    channel.counts.submits++
    const focusedAt = event.target && firstFocus.get(event.target)
    channel.counts.time_to_submit_ms = round(event.timeStamp - (focusedAt ?? 0))
  })
  return channel
}

function zeroCounts() {
  const silent = { silent_changes: 0, inserted: 0, uncaused_focuses: 0, unfocused_inputs: 0 }
  return {
    focuses: 0,
    changes: 0,
    submits: 0,
    autofills: 0,
    ...silent,
    time_to_submit_ms: null as number | null,
  }
}

function hasFocus(field: Element): boolean {
  const root = field.getRootNode()
  return (root instanceof ShadowRoot ? root : document).activeElement === field
}

function formOf(target: EventTarget | null): EventTarget | null {
  const field =
    target instanceof HTMLInputElement ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement
  return field ? (target.form ?? target) : null
}

function isTextField(target: EventTarget | null): target is HTMLInputElement | HTMLTextAreaElement {
  if (target instanceof HTMLTextAreaElement) return true
  return (
    target instanceof HTMLInputElement &&
    /^(text|email|password|search|tel|url|number)$/.test(target.type)
  )
}

function isSilentChange(event: Event, causedAt: number | null | undefined): boolean {
  const inputType = event instanceof InputEvent ? event.inputType : ''
  if (event.isTrusted && menuInput.test(inputType)) return false
  return event.timeStamp - (causedAt ?? Number.NEGATIVE_INFINITY) > causeMs
}

function isInserted(event: Event): boolean {
  const isText = event instanceof InputEvent && event.inputType === 'insertText'
  return event.isTrusted && isText && (event.data ?? '').length >= 2
}

// Returns true for the browser's autofill: a plain or replacement event on a field that matches `:autofill`.
function isAutofilled(event: Event): boolean {
  const plain = !(event instanceof InputEvent) || event.inputType === 'insertReplacementText'
  return (
    event.isTrusted &&
    plain &&
    event.target instanceof Element &&
    matches(event.target, ':autofill')
  )
}

function matches(element: Element, selector: string): boolean {
  try {
    return element.matches(selector)
  } catch {
    return false
  }
}
