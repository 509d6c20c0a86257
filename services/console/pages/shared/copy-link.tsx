import { useState } from 'preact/hooks'

/** Copies the address of what is shown now, with times that stay. */
export function CopyLink({ href }: { href: () => string }) {
  const [copied, setCopied] = useState(false)
  const copy = () =>
    navigator.clipboard
      .writeText(new URL(href(), window.location.href).href)
      .then(() => setCopied(true), console.warn)
  return (
    <button type="button" class="plain" title="The link keeps these times" onClick={copy}>
      {copied ? 'copied' : 'copy link to exactly this'}
    </button>
  )
}
