const who = document.querySelector('#who')

async function call(path, body) {
  const headers = { 'content-type': 'application/json' }
  const sent = body && { method: 'POST', headers, body: JSON.stringify(body) }
  const response = await fetch(`/console/api/${path}`, sent)
  const { data, error } = await response.json()
  if (response.ok) return data
  throw new Error(error.message)
}

// The code works once, so that it is of no use in the history.
function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (code) history.replaceState(null, '', location.pathname + location.search)
  return code
}

try {
  const code = takeCode()
  const { name, role, organization } = await (code ? call('login', { code }) : call('session'))
  who.textContent = `${name} is logged in to ${organization.name} ${role ? `as ${role}` : 'with a secret key'}.`
} catch (error) {
  who.textContent = error.message
}
