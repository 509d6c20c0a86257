// The page behind the link that a person gets after approving a signup. Its token is in the fragment, which no browser
// sends.

const gateSessionId = decodeURIComponent(location.pathname.split('/').at(-1) ?? '')
const status = /** @type {HTMLElement} */ (document.getElementById('status'))
const erase = /** @type {HTMLElement} */ (document.getElementById('erase'))
erase.addEventListener('click', forget)

async function forget() {
  if (erase.getAttribute('aria-disabled') === 'true') return
  erase.setAttribute('aria-disabled', 'true')
  status.textContent = 'One moment…'
  const answer = await ask().catch(() => undefined)
  if (answer?.ok) erase.remove()
  else erase.removeAttribute('aria-disabled')
  status.textContent = textOf(answer)
}

function ask() {
  return fetch(`/v1/gate/sessions/${encodeURIComponent(gateSessionId)}/erase`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ receipt_token: location.hash.slice(1) }),
    cache: 'no-store',
  })
}

/** @param {Response | undefined} answer */
function textOf(answer) {
  if (answer?.ok) return 'The record is deleted. You can close this page.'
  if (answer?.status === 404 || answer?.status === 422)
    return 'This link is incomplete. Open it exactly as you received it.'
  return 'That did not work. Press again in a minute.'
}

export {}
