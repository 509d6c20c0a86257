// Seconds that are left when it is worth saying so.
const marks = [300, 60, 20]

/**
 * Counts down in the element, and says aloud only what matters. Returns how to stop.
 * @param {HTMLElement} element
 * @param {{ endsAt: number, clock: () => number, say: (text: string) => void, end: () => void }} options
 *   times in epoch milliseconds
 */
export function countDown(element, { endsAt, clock, say, end }) {
  const secondsLeft = () => Math.max(0, Math.ceil((endsAt - clock()) / 1000))
  let left = secondsLeft()
  show()
  const timer = setInterval(tick, 250)
  return () => clearInterval(timer)

  function show() {
    element.textContent = ` · ${clockFace(left)} left`
    element.dataset.soon = String(left <= 60)
  }

  function tick() {
    const before = left
    left = secondsLeft()
    if (left === 0) {
      clearInterval(timer)
      end()
    } else if (left !== before) {
      show()
      if (marks.some((mark) => left <= mark && before > mark))
        say(`${spoken(left)} left to decide.`)
    }
  }
}

/**
 * `11:47 AM`, as the reader's language has it.
 * @param {number} at epoch milliseconds
 */
export function clockTime(at) {
  return new Date(at).toLocaleTimeString(undefined, { timeStyle: 'short' })
}

/**
 * `14:07`
 * @param {number} seconds
 */
export function clockFace(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/**
 * `40 seconds`, `2 minutes`, `3 hours`: never less than what is left.
 * @param {number} seconds
 */
export function spoken(seconds) {
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
