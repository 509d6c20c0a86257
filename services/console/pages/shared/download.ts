export function download(text: string, { name, type }: { name: string; type: string }): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type }))
  link.download = name
  link.click()
  // Browsers read the URL asynchronously.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

export const downloadJson = (data: object, name: string): void =>
  download(JSON.stringify(data, null, 2), { name: `${name}.json`, type: 'application/json' })
