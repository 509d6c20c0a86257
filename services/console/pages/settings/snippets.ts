export interface Snippet {
  title: string
  code: string
}

export interface SnippetNeeds {
  publishableKey: string
  /** Of the API, where pages of customers reach it. */
  url: string
}

/** What sends sessions from a page, in each of the ways, and what a back end does with the token. */
export function snippetsOf({ publishableKey, url }: SnippetNeeds): Snippet[] {
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
      code: `// npm install the file that "make pack" writes: the name is not published yet
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
      code: `import express from 'express'
import { verifyToken } from './verify-token.js' // docs/examples/express/verify-token.js

const app = express()
app.post('/signup', express.json({ limit: '256kb' }), (request, response) => {
  const { decision } = verifyToken(request.body.sealedToken, process.env.TIDEGATE_SECRET_KEY)
  response.sendStatus(decision.verdict === 'bot' ? 403 : 200)
})`,
    },
  ]
}
