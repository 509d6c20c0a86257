'use client'

import type { PackageStartOptions } from '@tidegate/browser'
import { useTidegate } from '@tidegate/browser/react'
import { type FormEvent, useState } from 'react'

export function SignUpForm({ options }: { options: PackageStartOptions }) {
  const tidegate = useTidegate(options)
  const [message, setMessage] = useState('')

  async function signUp(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const email = new FormData(event.currentTarget).get('email')
    const { sealedToken } = await tidegate.getSession()
    const answer = await fetch('/signup', {
      method: 'POST',
      body: JSON.stringify({ email, sealedToken }),
    })
    setMessage((await answer.json()).message)
  }

  return (
    <form onSubmit={signUp}>
      <input name="email" type="email" required />
      <button type="submit">Sign up</button>
      <p>{message}</p>
    </form>
  )
}
