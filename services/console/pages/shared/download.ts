/** Has the browser save a text as a file. */
export function download(text: string, { name, type }: { name: string; type: string }): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type }))
  link.download = name
  link.click()
  // Not at once, because browsers begin to read it later.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

export const downloadJson = (data: object, name: string): void =>
  download(JSON.stringify(data, null, 2), { name: `${name}.json`, type: 'application/json' })
