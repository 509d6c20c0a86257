import { verifyToken } from '@tidegate/server'
import express from 'express'

const { TIDEGATE_URL, TIDEGATE_PUBLISHABLE_KEY, TIDEGATE_SECRET_KEY, PORT = '3000' } = process.env
if (!TIDEGATE_URL || !TIDEGATE_PUBLISHABLE_KEY || !TIDEGATE_SECRET_KEY)
  throw new Error('Set TIDEGATE_URL, TIDEGATE_PUBLISHABLE_KEY and TIDEGATE_SECRET_KEY.')

const page = `<!doctype html>
<form><input name="email" type="email" required><button>Sign up</button></form><p></p>
<script type="module">
  import { start } from '${TIDEGATE_URL}/t.js'

  const tidegate = start({ publishableKey: '${TIDEGATE_PUBLISHABLE_KEY}' })
  const form = document.querySelector('form')
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const { sealedToken } = await tidegate.getSession()
    const body = JSON.stringify({ email: form.email.value, sealedToken })
    const answer = await fetch('/signup', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    document.querySelector('p').textContent = (await answer.json()).message
  })
</script>`

const app = express()

app.get('/', (_request, response) => {
  response.send(page)
})

app.post('/signup', express.json({ limit: '256kb' }), async (request, response) => {
  const session = await verified(request.body?.sealedToken)
  if (!session)
    return response.status(403).json({ message: 'Please reload the page and try again.' })
  const { verdict } = session.decision
  if (verdict === 'bot') return response.status(403).json({ message: 'This looks automated.' })
  // An inconclusive session gets a second look, as a mail with a link.
  return response.json({
    message: verdict === 'human' ? 'Welcome.' : 'Please confirm your mail address.',
  })
})

// More than one process? Then they share this, for example in Redis.
const used = new Set()

async function verified(token) {
  const result = await verifyToken(token, {
    secretKey: TIDEGATE_SECRET_KEY,
    seen: (id) => used.size === used.add(id).size,
  })
  if (result.ok) return result.session
  console.warn(`signup refused: ${result.message}`)
  return undefined
}

const server = app.listen(Number(PORT), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})
