export interface Snippet {
  title: string
  code: string
}

export interface SnippetOptions {
  publishableKey: string
  /** Base URL at which customers' pages reach the API. */
  url: string
}

/** Returns snippets that add the SDK to a page, and one that verifies the token in a back end. */
export function snippetsOf({ publishableKey, url }: SnippetOptions): Snippet[] {
  const options = `{ publishableKey: '${publishableKey}', endpoint: '${url}' }`
  return [
    {
      title: 'Script tag',
      code: `<script type="module">
  import { start } from '${url}/t.js'

  const tidegate = start({ publishableKey: '${publishableKey}' })
  const { sealedToken } = await tidegate.getSession() // send it with the form
</script>`,
    },
    {
      title: 'npm',
      code: `// npm install ${url}/sdk/browser.tgz
import { start } from '@tidegate/browser'

const tidegate = start(${options})
const { sealedToken } = await tidegate.getSession() // send it with the form`,
    },
    {
      title: 'Next',
      code: `'use client'

import { useTidegate } from '@tidegate/browser/react'

export function SignUpButton() {
  const tidegate = useTidegate(${options})
  const signUp = async () => {
    const { sealedToken } = await tidegate.getSession()
    await fetch('/signup', { method: 'POST', body: JSON.stringify({ sealedToken }) })
  }
  return <button onClick={signUp}>Sign up</button>
}`,
    },
    {
      title: 'Express',
      code: `// npm install express ${url}/sdk/server.tgz
import express from 'express'
import { verifyToken } from '@tidegate/server'

const secretKey = process.env.TIDEGATE_SECRET_KEY
const app = express()
app.post('/signup', express.json({ limit: '256kb' }), async (request, response) => {
  const result = await verifyToken(request.body.sealedToken, { secretKey })
  const isRefused = !result.ok || result.session.decision.verdict === 'bot'
  response.sendStatus(isRefused ? 403 : 200)
})`,
    },
  ]
}
