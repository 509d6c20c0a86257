import { createConsentApi } from './api.js'
import { paintBrand } from './brand.js'
import { createProver } from './proof.js'
import { initial, next, undecided } from './state.js'
import { followTabs } from './tabs.js'
import { createView } from './view.js'

/** @typedef {import('./state.js').Event} Event */
/** @typedef {import('./state.js').Effect} Effect */

const gateSessionId = decodeURIComponent(location.pathname.split('/').at(-1) ?? '')
const key = document.querySelector('meta[name="tidegate-key"]')?.getAttribute('content') ?? ''
const api = createConsentApi(gateSessionId)
const prover = createProver(key)
const tabs = followTabs(gateSessionId, {
  opened: () => happen({ type: 'superseded' }),
  left: () => happen({ type: 'alone' }),
  decides: () => state.view !== 'elsewhere',
})
const view = createView({
  happen: (type) => happen({ type }),
  clock: () => Date.now() + skewMs,
})

let state = initial
let skewMs = 0
/** Counts loads and what they led to: answers to what an earlier one asked are of no interest any more. */
let round = 0
let loadedAt = 0
/** Milliseconds from one look at what became of the request to the next: pages may be fetched so and so often. */
const lookAgainAfter = 5000

/** @param {Event} event */
function happen(event) {
  const [following, ...effects] = next(state, event)
  state = following
  view.show(state)
  for (const effect of effects) run(effect)
}

/** @param {Effect} effect */
function run(effect) {
  switch (effect.do) {
    case 'load':
      round++
      loadedAt = performance.now()
      return tell(load(), (problem) => ({ type: 'not_loaded', problem }))
    case 'prove':
      return tell(prove(), () => ({ type: 'no_proof' }))
    case 'approve':
      return tell(approve(effect.body), (problem) => ({ type: 'not_approved', problem }))
    case 'decline':
      return tell(decline(), (problem) => ({ type: 'not_declined', problem }))
    case 'wait':
      return tell(wait(effect), () => effect.event)
    case 'leave':
      // Replaced: going back must not lead to a request that has been answered.
      return location.replace(effect.url)
  }
}

/**
 * @param {Promise<Event>} work
 * @param {(problem: import('./problems.js').Problem) => Event} failed
 */
function tell(work, failed) {
  const asked = round
  work.catch(failed).then((event) => {
    if (asked === round) happen(event)
  })
}

/** @returns {Promise<Event>} */
async function load() {
  const { data, skewMs: ahead } = await api.consent()
  skewMs = ahead
  tabs.announce()
  paintBrand(data.service?.branding)
  prover.observe().catch(() => {})
  return { type: 'loaded', consent: data }
}

/** @returns {Promise<Event>} */
async function prove() {
  return { type: 'proved', sealedToken: await prover.prove() }
}

/**
 * @param {{ approve_token: string, sealed_token?: string }} body
 * @returns {Promise<Event>}
 */
async function approve(body) {
  const { data } = await api.approve(body)
  return { type: 'approved', data }
}

/** @returns {Promise<Event>} */
async function decline() {
  await api.decline()
  return { type: 'declined' }
}

/**
 * @param {{ seconds: number, event: Event }} effect
 * @returns {Promise<Event>}
 */
function wait({ seconds, event }) {
  return new Promise((resolve) => setTimeout(() => resolve(event), seconds * 1000))
}

addEventListener('pagehide', () => {
  if (undecided(state) && state.consent) api.closing(state.consent.approve_token)
})
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) happen({ type: 'returned' })
})
addEventListener('focus', cameToFront)
document.addEventListener('visibilitychange', cameToFront)
happen({ type: 'opened' })

/** Another browser may have opened or closed the request meanwhile; whoever looks at this page decides in this one. */
function cameToFront() {
  const isDue = state.view === 'elsewhere' || performance.now() - loadedAt >= lookAgainAfter
  if (document.visibilityState === 'visible' && isDue) happen({ type: 'front' })
}
