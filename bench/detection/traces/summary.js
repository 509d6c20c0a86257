// Runs the SDK's own summary of input on a recording. Plain JavaScript, because the SDK has a page's types.

const listeners = new Map()
/** Offset of the page below the title bar and tabs. */
const offset = { x: 60, y: 130 }

Object.assign(globalThis, {
  Element: class {},
  window: {
    screenX: 60,
    screenY: 40,
    outerWidth: 1400,
    outerHeight: 940,
    innerWidth: 1400,
    innerHeight: 850,
    scrollY: 0,
    devicePixelRatio: 1,
    addEventListener(type, listener) {
      listeners.set(type, [...(listeners.get(type) ?? []), listener])
    },
    removeEventListener() {},
  },
})

// Imported by URL, because the SDK is type-checked only with a page's types.
const sdk = new URL('../../../services/web/sdk/behavior/inputs.ts', import.meta.url)
const { trackBehavior } = await import(sdk.href)

function emit(type, event) {
  for (const listener of listeners.get(type) ?? []) listener({ ...event, type })
}

/** Returns the behavior that the SDK would send for a trace. */
export function summarise({ events }) {
  listeners.clear()
  const stopping = new AbortController()
  const tracker = trackBehavior(stopping.signal)
  let last = events[0]
  let pressed = false
  for (const event of events) {
    pressed = event.type === 'press' || (pressed && event.type !== 'release')
    const base = baseOf(event, { last, pressed })
    if (event.type === 'move') for (const type of ['pointermove', 'mousemove']) emit(type, base)
    if (event.type === 'wheel') emit('wheel', { ...base, deltaY: 100, deltaMode: 0 })
    if (event.type === 'press') for (const type of ['pointerdown', 'mousedown']) emit(type, base)
    if (event.type === 'release')
      for (const type of ['pointerup', 'mouseup', 'click']) emit(type, base)
    last = event
  }
  stopping.abort()
  return tracker.drain()
}

function baseOf({ x, y, at }, { last, pressed }) {
  const event = {
    isTrusted: true,
    timeStamp: at,
    pointerType: 'mouse',
    detail: 1,
    button: 0,
    clientX: x,
    clientY: y,
    screenX: x + offset.x,
    screenY: y + offset.y,
    movementX: x - last.x,
    movementY: y - last.y,
    buttons: pressed ? 1 : 0,
    pressure: pressed ? 0.5 : 0,
    target: null,
    composedPath: () => [],
    sourceCapabilities: { firesTouchEvents: false },
  }
  return { ...event, getCoalescedEvents: () => [event], getPredictedEvents: () => [] }
}
