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
  () => step('fingerprint', 'done'),
  () => step('fingerprint', 'failed'),
)

function step(name, state) {
  document.querySelector(`[data-step="${name}"]`).dataset.state = state
}

async function ask() {
  button.disabled = true
  result.dataset.state = 'running'
  status.textContent = 'Requesting the decision.'
  for (const name of ['handoff', 'verify']) step(name, '')
  try {
    const { sealedToken } = await inStep('handoff', tidegate.getSession())
    const answer = await inStep('verify', verify(sealedToken))
    show(renderResult(answer))
    result.dataset.sessionId = answer.session.data.id
    result.dataset.state = 'done'
    if (matchMedia('(max-width: 860px)').matches) result.scrollIntoView({ block: 'start' })
  } catch (error) {
    show(renderFailure(error.message))
    result.dataset.state = 'failed'
  } finally {
    button.disabled = false
    button.textContent = 'Check again'
  }
}

async function inStep(name, work) {
  step(name, 'active')
  try {
    const value = await work
    step(name, 'done')
    return value
  } catch (error) {
    step(name, 'failed')
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

function show(markup) {
  result.innerHTML = markup.text
  // Screen readers announce only this instead of all results.
  status.textContent = result.querySelector('h2')?.textContent ?? ''
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  ask()
})
step('observe', 'done')
if (params.get('auto') === '1') ask()
