import { renderFailure, renderResult } from '/assets/render.js'
import { start } from '/t.js'

const publishableKey = document.querySelector('meta[name="tidegate-key"]').content
const form = document.querySelector('#form')
const button = document.querySelector('#ask')
const result = document.querySelector('#result')
const status = document.querySelector('#status')
const params = new URLSearchParams(location.search)

const tidegate = start({ publishableKey })
tidegate.onError((error) => console.warn('tidegate:', error.message))
tidegate.waitForFingerprint().then(
  () => setStep('fingerprint', 'done'),
  () => setStep('fingerprint', 'failed'),
)

function setStep(name, state) {
  document.querySelector(`[data-step="${name}"]`).dataset.state = state
}

async function requestDecision() {
  button.disabled = true
  result.dataset.state = 'running'
  status.textContent = 'Requesting the decision.'
  for (const name of ['handoff', 'verify']) setStep(name, '')
  try {
    const { sealedToken } = await showProgress('handoff', tidegate.getSession())
    const outcome = await showProgress('verify', verify(sealedToken))
    showResult(renderResult(outcome))
    result.dataset.sessionId = outcome.session.data.id
    result.dataset.state = 'done'
    if (matchMedia('(max-width: 860px)').matches) result.scrollIntoView({ block: 'start' })
  } catch (error) {
    showResult(renderFailure(error.message))
    result.dataset.state = 'failed'
  } finally {
    button.disabled = false
    button.textContent = 'Check again'
  }
}

/** Marks the step as active, then as done or failed, and returns what the work resolves to. */
async function showProgress(name, work) {
  setStep(name, 'active')
  try {
    const value = await work
    setStep(name, 'done')
    return value
  } catch (error) {
    setStep(name, 'failed')
    throw error
  }
}

async function verify(sealedToken) {
  const response = await fetch('/demo/api/verify', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ sealedToken }),
  })
  const body = await response.json()
  if (response.ok) return body
  throw new Error(body.error?.message ?? `The back end returned status ${response.status}.`)
}

function showResult(markup) {
  result.innerHTML = markup.text
  // Screen readers announce this text instead of the entire result.
  status.textContent = result.querySelector('h2')?.textContent ?? ''
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  requestDecision()
})
setStep('observe', 'done')
if (params.get('auto') === '1') requestDecision()
