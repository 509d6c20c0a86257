import { createConsentApi } from './api.js'
import { css, looksFilled, parseHex, readableOn, standsOut } from './colors.js'
import { initial, next, undecided } from './state.js'
import { createView } from './view.js'

/** @import { Branding, Effect, Event, Problem } from './state.js' */

const gateSessionId = decodeURIComponent(location.pathname.split('/').at(-1) ?? '')
const key = document.querySelector('meta[name="tidegate-key"]')?.getAttribute('content') ?? ''
const dark = matchMedia('(prefers-color-scheme: dark)')
const api = createConsentApi(gateSessionId)
// The server gives the code of a claim only to the page that approved, and a reload makes another page of it.
const savedCode = rememberIn(`tidegate-claim-${gateSessionId}`)
const prover = createProver(key)
const tabs = followTabs(gateSessionId, {
  opened: () => happen({ type: 'superseded' }),
  left: () => happen({ type: 'released' }),
  decides: () => state.view !== 'elsewhere',
})
const view = createView({
  happen: (type, accepted) => happen(accepted ? { type: 'approve', accepted } : { type }),
  clock: () => Date.now() + skewMs,
})

let state = initial
let skewMs = 0
// Counts loads, because answers to what was requested before the last one are of no interest any more.
let round = 0
let loadedAt = 0
// Between two reloads of the request, because there is a limit for the pages of an address.
const reloadMs = 5000

/** @param {Event} event */
function happen(event) {
  const [following, ...effects] = next(state, event)
  state = following
  if (state.code !== null) savedCode.set(state.code)
  view.show(state)
  for (const effect of effects) run(effect)
}

/** @param {Effect} effect */
function run(effect) {
  switch (effect.do) {
    case 'load':
      round++
      loadedAt = performance.now()
      return follow(load(), (problem) => ({ type: 'not_loaded', problem }))
    case 'prove':
      return follow(
        prover.prove(effect.approveToken).then((sealedToken) => ({ type: 'proved', sealedToken })),
        () => ({ type: 'no_proof' }),
      )
    case 'approve':
      return follow(
        api.approve(effect.body).then(({ data }) => ({ type: 'approved', data })),
        (problem) => ({ type: 'not_approved', problem }),
      )
    case 'decline':
      return follow(
        api.decline().then(() => ({ type: 'declined' })),
        (problem) => ({ type: 'not_declined', problem }),
      )
    case 'wait':
      return follow(
        new Promise((resolve) => setTimeout(() => resolve(effect.event), effect.seconds * 1000)),
        () => effect.event,
      )
    case 'leave':
      // This page is replaced, because going back must not lead to a request that has been answered.
      return location.replace(effect.url)
  }
}

/**
 * @param {Promise<Event>} work
 * @param {(problem: Problem) => Event} failed
 */
function follow(work, failed) {
  const begun = round
  work.catch(failed).then((event) => {
    if (begun === round) happen(event)
  })
}

/** @returns {Promise<Event>} */
async function load() {
  const { data, skewMs: ahead } = await api.consent()
  skewMs = ahead
  tabs.announce()
  paintBrand(data.service?.branding)
  prover.observe().catch(() => {})
  return { type: 'loaded', consent: data, code: savedCode.get() }
}

addEventListener('pagehide', () => {
  if (undecided(state) && state.consent) api.closing(state.consent.approve_token)
})
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) happen({ type: 'returned' })
})
addEventListener('focus', cameToFront)
document.addEventListener('visibilitychange', cameToFront)
dark.addEventListener('change', () => paintBrand(state.consent?.service?.branding))
happen({ type: 'opened' })

// Another browser may have opened or closed the request meanwhile. A person who has this page in front decides here.
function cameToFront() {
  const isDue = state.view === 'elsewhere' || performance.now() - loadedAt >= reloadMs
  if (document.visibilityState === 'visible' && isDue) happen({ type: 'front' })
}

/**
 * One request is decided in one tab, the one that opened it last. Its other tabs are notified, and notify this one.
 * @param {string} gateSessionId
 * @param {{ opened: () => void, left: () => void, decides: () => boolean }} options `opened`: another tab opened the
 *   request; `left`: the tab that had it is closed; `decides`: whether this is the tab that has it
 */
function followTabs(gateSessionId, { opened, left, decides }) {
  const name = `tidegate-consent-${gateSessionId}`
  let channel = open()

  function open() {
    const opening = new BroadcastChannel(name)
    opening.onmessage = ({ data }) => (data === 'left' ? left() : opened())
    return opening
  }

  addEventListener('pagehide', () => {
    if (decides()) channel.postMessage('left')
    // An open channel would keep the page out of the back/forward cache.
    channel.close()
  })
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) channel = open()
  })
  return {
    announce: () => channel.postMessage('opened'),
  }
}

/**
 * Text that a reload of this tab finds again, where the browser stores anything.
 * @param {string} name
 */
function rememberIn(name) {
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
 * Paints accents in the service's colours, and Approve where it stands out in them; the rest is in ours.
 * @param {Branding | undefined} branding
 */
function paintBrand(branding) {
  const root = document.documentElement
  /** @param {string} property */
  const colorOf = (property) => parseHex(getComputedStyle(root).getPropertyValue(property).trim())
  const ground = colorOf('--panel')
  const brand = parseHex(branding?.primary_color)
  if (!brand || !ground) return
  const action = looksFilled(brand, ground) ? brand : undefined
  const properties = {
    '--brand': brand,
    '--on-brand': readableOn(brand),
    '--brand-second': parseHex(branding?.secondary_color) ?? brand,
    '--action': action,
    '--on-action': action && readableOn(action),
    '--action-edge': action && !standsOut(action, ground) ? colorOf('--muted') : undefined,
  }
  for (const [property, color] of Object.entries(properties)) {
    // Without a colour the style sheet decides.
    if (color) root.style.setProperty(property, css(color))
    else root.style.removeProperty(property)
  }
}

/**
 * Observes how this page is used, from now on, and makes proofs of it. `prove` resolves to a sealed token of this
 * moment and for this approve token, and rejects when the SDK cannot be loaded or cannot hand over.
 * @param {string} publishableKey
 */
function createProver(publishableKey) {
  let tries = 0
  /** @type {Promise<{ getSession(options: { binding: string }): Promise<{ sealedToken: string }> }> | undefined} */
  let client

  async function load() {
    // A browser may remember that an address failed.
    const { start } = await import(tries++ === 0 ? '/t.js' : `/t.js?try=${tries}`)
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
