// Page where a person deletes the record of their approval. The receipt token is in the URL's fragment, which browsers
// don't send to the server.

const gateSessionId = decodeURIComponent(location.pathname.split('/').at(-1) ?? '')
const status = /** @type {HTMLElement} */ (document.getElementById('status'))
const eraseButton = /** @type {HTMLElement} */ (document.getElementById('erase'))
eraseButton.addEventListener('click', eraseRecord)

async function eraseRecord() {
  if (eraseButton.getAttribute('aria-disabled') === 'true') return
  eraseButton.setAttribute('aria-disabled', 'true')
  status.textContent = 'One moment…'
  const response = await requestErasure().catch(() => undefined)
  if (response?.ok) eraseButton.remove()
  else eraseButton.removeAttribute('aria-disabled')
  status.textContent = statusTextOf(response)
}

function requestErasure() {
  return fetch(`/v1/gate/sessions/${encodeURIComponent(gateSessionId)}/erase`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ receipt_token: location.hash.slice(1) }),
    cache: 'no-store',
  })
}

/** @param {Response | undefined} response */
function statusTextOf(response) {
  if (response?.ok) return 'The record is deleted. You can close this page.'
  if (response?.status === 404 || response?.status === 422)
    return 'This link is incomplete. Open it exactly as you received it.'
  return 'That did not work. Press again in a minute.'
}

export {}
