import { createConsentApi } from './api.js'
import { applyBranding } from './branding.js'
import { initialState, isUndecided, transition } from './state.js'
import { createView } from './view.js'

/** @import { Effect, Event, Problem } from './state.js' */

const gateSessionId = decodeURIComponent(location.pathname.split('/').at(-1) ?? '')
const key = document.querySelector('meta[name="tidegate-key"]')?.getAttribute('content') ?? ''
const darkScheme = matchMedia('(prefers-color-scheme: dark)')
const api = createConsentApi(gateSessionId)
// The server returns the claim code only to the page that approved, so store it for reloads of the tab.
const savedCode = tabStorage(`tidegate-claim-${gateSessionId}`)
const prover = createProver(key)
const tabs = watchTabs(gateSessionId, {
  onOpened: () => dispatch({ type: 'opened_elsewhere' }),
  onClosed: () => dispatch({ type: 'closed_elsewhere' }),
  isActive: () => state.view !== 'elsewhere',
})
const view = createView({
  dispatch: (type, accepted) => dispatch(accepted ? { type: 'approve', accepted } : { type }),
  clock: () => Date.now() + skewMs,
})

let state = initialState
let skewMs = 0
// Results that were requested before the latest load are dropped.
let loadCount = 0
let loadedAt = 0
// Throttles reloads, which the server limits per IP address.
const minReloadMs = 5000

/** @param {Event} event */
function dispatch(event) {
  const [newState, ...effects] = transition(state, event)
  state = newState
  if (state.code !== null) savedCode.set(state.code)
  view.show(state)
  for (const effect of effects) run(effect)
}

/** @param {Effect} effect */
function run(effect) {
  switch (effect.do) {
    case 'load':
      loadCount++
      loadedAt = performance.now()
      return dispatchResult(load(), (problem) => ({ type: 'not_loaded', problem }))
    case 'prove':
      return dispatchResult(
        prover.prove(effect.approveToken).then((sealedToken) => ({ type: 'proved', sealedToken })),
        () => ({ type: 'no_proof' }),
      )
    case 'approve':
      return dispatchResult(
        api.approve(effect.body).then(({ data }) => ({ type: 'approved', data })),
        (problem) => ({ type: 'not_approved', problem }),
      )
    case 'decline':
      return dispatchResult(
        api.decline().then(() => ({ type: 'declined' })),
        (problem) => ({ type: 'not_declined', problem }),
      )
    case 'wait':
      return dispatchResult(
        new Promise((resolve) => setTimeout(() => resolve(effect.event), effect.seconds * 1000)),
        () => effect.event,
      )
    case 'leave':
      // Replaces the history entry, so that going back does not reopen a decided request.
      return location.replace(effect.url)
  }
}

/**
 * Dispatches the event that `work` resolves to, unless the request was loaded again meanwhile.
 * @param {Promise<Event>} work
 * @param {(problem: Problem) => Event} onFailure
 */
function dispatchResult(work, onFailure) {
  const loadsBefore = loadCount
  work.catch(onFailure).then((event) => {
    if (loadsBefore === loadCount) dispatch(event)
  })
}

/** @returns {Promise<Event>} */
async function load() {
  const { data, skewMs: serverSkewMs } = await api.loadConsent()
  skewMs = serverSkewMs
  tabs.announce()
  applyBranding(data.service?.branding)
  prover.observe().catch(() => {})
  return { type: 'loaded', consent: data, code: savedCode.get() }
}

addEventListener('pagehide', () => {
  if (isUndecided(state) && state.consent) api.reportClosing(state.consent.approve_token)
})
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) dispatch({ type: 'returned' })
})
addEventListener('focus', reloadIfDue)
document.addEventListener('visibilitychange', reloadIfDue)
darkScheme.addEventListener('change', () => applyBranding(state.consent?.service?.branding))
dispatch({ type: 'opened' })

// Reloads the request when the page comes to the front, because another browser may have opened or closed it.
function reloadIfDue() {
  const isDue = state.view === 'elsewhere' || performance.now() - loadedAt >= minReloadMs
  if (document.visibilityState === 'visible' && isDue) dispatch({ type: 'came_to_front' })
}

/**
 * Coordinates the tabs that show a request, so that only the one that opened it last can decide.
 * @param {string} gateSessionId
 * @param {{ onOpened: () => void, onClosed: () => void, isActive: () => boolean }} options `onOpened`: another tab
 *   opened the request; `onClosed`: the tab that could decide is closed; `isActive`: true in the tab that can decide
 */
function watchTabs(gateSessionId, { onOpened, onClosed, isActive }) {
  const name = `tidegate-consent-${gateSessionId}`
  let channel = openChannel()

  function openChannel() {
    const newChannel = new BroadcastChannel(name)
    newChannel.onmessage = ({ data }) => (data === 'left' ? onClosed() : onOpened())
    return newChannel
  }

  addEventListener('pagehide', () => {
    if (isActive()) channel.postMessage('left')
    // An open channel would keep the page out of the back/forward cache.
    channel.close()
  })
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) channel = openChannel()
  })
  return {
    announce: () => channel.postMessage('opened'),
  }
}

/**
 * Stores a text for reloads of the tab, if the browser allows storage.
 * @param {string} name
 */
function tabStorage(name) {
  return {
    get() {
      try {
        return sessionStorage.getItem(name)
      } catch {
        return null
      }
    },
    /** @param {string} text */
    set(text) {
      try {
        sessionStorage.setItem(name, text)
      } catch {}
    },
  }
}

/**
 * Proves that a person uses this page. `observe` loads and starts the SDK. `prove` resolves to a sealed token that is
 * bound to the approve token, and rejects if the SDK cannot be loaded or fails.
 * @param {string} publishableKey
 */
function createProver(publishableKey) {
  let attempts = 0
  /** @type {Promise<{ getSession(options: { binding: string }): Promise<{ sealedToken: string }> }> | undefined} */
  let client

  async function load() {
    // Browsers cache failed imports by URL, so a retry needs another URL.
    const { start } = await import(attempts++ === 0 ? '/t.js' : `/t.js?try=${attempts}`)
    return start({ publishableKey })
  }

  function observe() {
    client ??= load()
    client.catch(() => {
      client = undefined
    })
    return client
  }

  return {
    observe,
    /** @param {string} approveToken */
    async prove(approveToken) {
      const { sealedToken } = await (await observe()).getSession({ binding: approveToken })
      return sealedToken
    },
  }
}
