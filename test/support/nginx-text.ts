export interface NginxParts {
  /** Folder for files that nginx writes. */
  folder: string
  /** Contents of `http { }`. */
  http: string
  /** Lines outside of `http { }`. */
  main?: string
}

/** Returns the configuration of a separate nginx that writes only to its folder. */
export function nginxText({ folder, http, main = '' }: NginxParts): string {
  const files = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (one) => `${one}_temp_path ${folder}/${one};`,
  )
  const start = `${main}\ndaemon off; user root; worker_processes 1; pid ${folder}/nginx.pid; events {}`
  return `${start}\nhttp { access_log off; ${files.join(' ')}\n${http} }`
}
