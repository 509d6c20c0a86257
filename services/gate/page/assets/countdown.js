/** Minutes and seconds that are left when it is worth saying so. */
const marks = [300, 60, 20]

/**
 * Counts down where it is shown, and says aloud only what matters. Stops by itself when the element is gone.
 * @param {HTMLElement} element
 * @param {{ endsAt: number, clock: () => number, say: (text: string) => void, end: () => void }} options
 *   times in epoch milliseconds
 */
export function countDown(element, { endsAt, clock, say, end }) {
  let before = Infinity
  const timer = setInterval(tick, 250)
  tick()

  function tick() {
    const left = Math.max(0, Math.ceil((endsAt - clock()) / 1000))
    if (left === before) return
    element.textContent = clockFace(left)
    element.dataset.soon = String(left <= 60)
    const passed = marks.find((mark) => left <= mark && before > mark)
    if (passed && before !== Infinity) say(`${spoken(left)} left to decide.`)
    before = left
    if (left > 0 && (element.isConnected || before === Infinity)) return
    clearInterval(timer)
    if (left === 0) end()
  }
  return () => clearInterval(timer)
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
