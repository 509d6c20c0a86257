/**
 * One request is decided in one tab: the one that opened it last. Tells the others, and hears from them.
 * @param {string} gateSessionId
 * @param {() => void} superseded called when another tab opened the request
 */
export function followTabs(gateSessionId, superseded) {
  const name = `tidegate-consent-${gateSessionId}`
  /** @type {BroadcastChannel | undefined} */
  let channel

  function open() {
    channel = new BroadcastChannel(name)
    channel.onmessage = superseded
  }

  open()
  // An open channel would keep the page out of the back/forward cache.
  addEventListener('pagehide', () => channel?.close())
  addEventListener('pageshow', ({ persisted }) => persisted && open())
  return {
    announce: () => channel?.postMessage('opened'),
  }
}
