// Remaining seconds at which screen readers announce the time.
const announceAt = [300, 60, 20]

/**
 * Shows the remaining time in the element, and announces it to screen readers at a few points. Returns a stop function.
 * @param {HTMLElement} element
 * @param {{ endsAt: number, clock: () => number, announce: (text: string) => void, onEnd: () => void }} options
 *   times in epoch milliseconds
 */
export function countDown(element, { endsAt, clock, announce, onEnd }) {
  const secondsLeft = () => Math.max(0, Math.ceil((endsAt - clock()) / 1000))
  let left = secondsLeft()
  show()
  const timer = setInterval(tick, 250)
  return () => clearInterval(timer)

  function show() {
    element.textContent = ` · ${minutesAndSeconds(left)} left`
    element.dataset.soon = String(left <= 60)
  }

  function tick() {
    const previous = left
    left = secondsLeft()
    if (left === 0) {
      clearInterval(timer)
      onEnd()
    } else if (left !== previous) {
      show()
      if (announceAt.some((mark) => left <= mark && previous > mark))
        announce(`${durationText(left)} left to decide.`)
    }
  }
}

/**
 * Returns a time in the browser's language, for example `11:47 AM`.
 * @param {number} at epoch milliseconds
 */
export function localTime(at) {
  return new Date(at).toLocaleTimeString(undefined, { timeStyle: 'short' })
}

/**
 * Returns minutes and seconds, for example `14:07`.
 * @param {number} seconds
 */
export function minutesAndSeconds(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/**
 * Returns the duration rounded up, for example `40 seconds`, `2 minutes` or `3 hours`.
 * @param {number} seconds
 */
export function durationText(seconds) {
  if (seconds < 90) return plural(Math.max(1, Math.ceil(seconds)), 'second')
  if (seconds < 5400) return plural(Math.ceil(seconds / 60), 'minute')
  return plural(Math.ceil(seconds / 3600), 'hour')
}

/**
 * @param {number} count
 * @param {string} unit
 */
function plural(count, unit) {
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
