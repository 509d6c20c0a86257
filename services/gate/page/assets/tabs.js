/**
 * One request is decided in one tab: the one that opened it last. Tells the others, and hears from them.
 * @param {string} gateSessionId
 * @param {{ opened: () => void, left: () => void, decides: () => boolean }} options `opened`: another tab opened the
 *   request; `left`: the tab that had it is closed; `decides`: whether this is the tab that has it
 */
export function followTabs(gateSessionId, { opened, left, decides }) {
  const name = `tidegate-consent-${gateSessionId}`
  /** @type {BroadcastChannel | undefined} */
  let channel

  function open() {
    channel = new BroadcastChannel(name)
    channel.onmessage = ({ data }) => (data === 'left' ? left() : opened())
  }

  open()
  addEventListener('pagehide', () => {
    if (decides()) channel?.postMessage('left')
    // An open channel would keep the page out of the back/forward cache.
    channel?.close()
  })
  addEventListener('pageshow', ({ persisted }) => persisted && open())
  return {
    announce: () => channel?.postMessage('opened'),
  }
}
